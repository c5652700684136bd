// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/kill_at_call.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace cachewarm::agent {
namespace {

// Calls that may change the file system; of an open and an ioctl the arguments decide.
constexpr uint64_t kChanges[] = {
    SYS_openat,          SYS_openat2,   SYS_ioctl,
    SYS_renameat,        SYS_renameat2, SYS_linkat,
    SYS_symlinkat,       SYS_mkdirat,   SYS_unlinkat,
    SYS_write,           SYS_pwrite64,  SYS_writev,
    SYS_pwritev,         SYS_pwritev2,  SYS_copy_file_range,
    SYS_sendfile,        SYS_splice,    SYS_truncate,
    SYS_mknodat,         SYS_setxattr,  SYS_fsetxattr,
    SYS_sync_file_range, SYS_sync,      SYS_ftruncate,
    SYS_fallocate,       SYS_fchmod,    SYS_fchmodat,
    SYS_fchown,          SYS_fchownat,  SYS_fsync,
    SYS_fdatasync,       SYS_syncfs,    SYS_utimensat,
#ifdef SYS_rename
    SYS_creat,           SYS_link,      SYS_chmod,
    SYS_chown,           SYS_rename,    SYS_mkdir,
    SYS_symlink,         SYS_unlink,    SYS_rmdir,
#endif
};

bool IsTraceStop(int status) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

CallEntry ToEntry(pid_t child, const __ptrace_syscall_info& info) {
  CallEntry entry{.process = child, .number = info.entry.nr};
  std::copy(std::begin(info.entry.args), std::end(info.entry.args), entry.arguments.begin());
  return entry;
}

// Replaces the call with one that does not exist, so that it has no effect.
void Skip(pid_t child) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  registers.orig_rax = static_cast<unsigned long long>(-1);
  ptrace(PTRACE_SETREGS, child, nullptr, &registers);
#elif defined(__aarch64__)
  int none = -1;
  iovec number{&none, sizeof(none)};
  ptrace(PTRACE_SETREGSET, child, NT_ARM_SYSTEM_CALL, &number);
#else
#error "skipping a system call is not implemented for this processor"
#endif
}

void SetResult(pid_t child, int error) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
  ptrace(PTRACE_SETREGS, child, nullptr, &registers);
#elif defined(__aarch64__)
  user_regs_struct registers{};
  iovec all{&registers, sizeof(registers)};
  ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all);
  registers.regs[0] = static_cast<unsigned long long>(-static_cast<long long>(error));
  ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all);
#endif
}

// Called at the entry and at the exit of each call; `mark` keeps its value from entry to exit.
// Return false to kill the process.
using OnCall = std::function<bool(const CallEntry& entry, bool is_entry, int& mark)>;

// Waits until thread `which` (-1: any) stops or exits. Returns the thread.
pid_t Wait(pid_t which, int& status) {
  pid_t process = -1;
  do {
    process = waitpid(which, &status, __WALL);
  } while (process < 0 && errno == EINTR);
  return process;
}

// The calls at which a traced process stops. A stop costs two context switches.
enum class Stops { kEveryCall, kChanges };

bool IsFilterStop(int status) {
  return status >> 8 == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8));
}

// From now on this process stops before the calls of kChanges, and of opens only before those that
// may create. The numbers are those of its own architecture: it makes no others.
bool StopAtChangesOnly() {
  constexpr auto kLoad = static_cast<uint16_t>(BPF_LD | BPF_W | BPF_ABS);
  constexpr auto kIsEqual = static_cast<uint16_t>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kHasBits = static_cast<uint16_t>(BPF_JMP | BPF_JSET | BPF_K);
  constexpr auto kReturn = static_cast<uint16_t>(BPF_RET | BPF_K);
  constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
  constexpr uint32_t kFlags = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);
  std::vector<sock_filter> program = {BPF_STMT(kLoad, kNumber)};
  for (const uint64_t number : kChanges) {
    if (number == SYS_openat) {
      program.push_back(BPF_JUMP(kIsEqual, static_cast<uint32_t>(number), 0, 4));
      program.push_back(BPF_STMT(kLoad, kFlags));
      program.push_back(BPF_JUMP(kHasBits, O_CREAT, 0, 1));
      program.push_back(BPF_STMT(kReturn, SECCOMP_RET_TRACE));
      program.push_back(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
    } else {
      program.push_back(BPF_JUMP(kIsEqual, static_cast<uint32_t>(number), 0, 1));
      program.push_back(BPF_STMT(kReturn, SECCOMP_RET_TRACE));
    }
  }
  program.push_back(BPF_STMT(kReturn, SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Follows one child and its threads from stop to stop.
class Tracer {
 public:
  Tracer(pid_t child, Stops stops, const OnCall& on_call)
      : child_(child), stops_(stops), on_call_(on_call) {}

  TracedRun Follow() {
    int status = 0;
    Wait(child_, status);
    ptrace(PTRACE_SETOPTIONS, child_, nullptr,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACESECCOMP);
    threads_[child_].is_known = true;
    Resume(child_, 0);
    while (true) {
      const pid_t thread = Wait(-1, status);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        threads_.erase(thread);
        if (thread == child_) {
          return {.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0};
        }
      } else if ((IsTraceStop(status) || IsFilterStop(status)) && !Notify(thread)) {
        return Kill();
      } else {
        Resume(thread, SignalOf(thread, status));
      }
    }
  }

 private:
  struct Thread {
    CallEntry entry;
    int mark = 0;
    bool is_known = false;
    bool is_at_change = false;  // from the filter's stop until the exit of the call
  };

  // Resumes a thread until its next call, or until the next call that the filter stops. The thread
  // may have exited already.
  void Resume(pid_t thread, int signal) {
    const bool is_every = stops_ == Stops::kEveryCall || threads_[thread].is_at_change;
    ptrace(is_every ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr, signal);
  }

  // Stops come in pairs: entry, exit.
  bool Notify(pid_t thread) {
    Thread& known = threads_[thread];
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info);
    // A stop by the filter stands in the place of that at the entry, and has the same members.
    const bool is_entry = info.op != PTRACE_SYSCALL_INFO_EXIT;
    if (is_entry) {
      known.entry = ToEntry(thread, info);
      known.mark = 0;
    }
    known.is_at_change = is_entry;
    return on_call_(known.entry, is_entry, known.mark);
  }

  // Returns the signal to deliver to the thread; 0 for stops caused by the tracer.
  int SignalOf(pid_t thread, int status) {
    const bool is_new = !std::exchange(threads_[thread].is_known, true);
    const bool is_event = IsTraceStop(status) || (status >> 16) != 0;
    return is_event || (is_new && WSTOPSIG(status) == SIGSTOP) ? 0 : WSTOPSIG(status);
  }

  TracedRun Kill() const {
    kill(child_, SIGKILL);
    int status = 0;
    while (Wait(-1, status) != child_ || WIFSTOPPED(status)) {
    }
    return {.was_killed = true};
  }

  pid_t child_;
  Stops stops_;
  const OnCall& on_call_;
  std::map<pid_t, Thread> threads_;
};

// Runs `work` in a child and follows it.
TracedRun Follow(const std::function<bool()>& work, Stops stops, const OnCall& on_call) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    if (stops == Stops::kChanges && !StopAtChangesOnly()) {
      _exit(2);
    }
    // Skip the leak check and the exit handlers of the test framework.
    _exit(work() ? 0 : 1);
  }
  return Tracer(child, stops, on_call).Follow();
}

}  // namespace

bool CallEntry::ChangesFiles() const {
  switch (number) {
    case SYS_openat:
      return (arguments[2] & O_CREAT) != 0;
    case SYS_ioctl:  // a reflink copy
      return arguments[1] == FICLONE || arguments[1] == FICLONERANGE;
    case SYS_openat2:  // struct open_how begins with the flags
      return (ptrace(PTRACE_PEEKDATA, process, arguments[2], nullptr) & O_CREAT) != 0;
    default:
      return std::find(std::begin(kChanges), std::end(kChanges), number) != std::end(kChanges);
  }
}

TracedRun KillAtPoint(const std::function<bool()>& work, int point) {
  int points = 0;
  const auto on_call = [&](const CallEntry& entry, bool is_entry, int& mark) {
    // Decide at the entry: at the exit the memory with the flags may not be readable any more.
    if (is_entry) {
      mark = entry.ChangesFiles() ? 1 : 0;
    }
    return mark == 0 || points++ != point;
  };
  TracedRun run = Follow(work, Stops::kChanges, on_call);
  run.points = points;
  return run;
}

TracedRun FailCalls(const std::function<bool()>& work,
                    const std::function<int(const CallEntry&)>& error_of) {
  int points = 0;
  const auto on_call = [&](const CallEntry& entry, bool is_entry, int& mark) {
    if (is_entry) {
      points += entry.ChangesFiles() ? 1 : 0;
      mark = error_of(entry);
    }
    if (mark != 0) {
      is_entry ? Skip(entry.process) : SetResult(entry.process, mark);
    }
    return true;
  };
  TracedRun run = Follow(work, Stops::kEveryCall, on_call);
  run.points = points;
  return run;
}

}  // namespace cachewarm::agent
