// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/kill_at_call.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <map>

namespace cachewarm::agent {
namespace {

bool IsTraceStop(int status) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

CallEntry ToEntry(pid_t child, const __ptrace_syscall_info& info) {
  CallEntry entry{.process = child, .number = info.entry.nr};
  std::copy(std::begin(info.entry.args), std::end(info.entry.args), entry.arguments.begin());
  return entry;
}

// The call becomes one that does not exist: nothing happens.
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
#error "how a call is skipped is not known for this processor"
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

// Called at the entry and at the exit of each call; `mark` keeps a number from one to the other.
// False kills the process.
using OnCall = std::function<bool(const CallEntry& entry, bool is_entry, int& mark)>;

// The one of `which`, -1 for any, that stopped or ended.
pid_t Wait(pid_t which, int& status) {
  pid_t process = -1;
  do {
    process = waitpid(which, &status, __WALL);
  } while (process < 0 && errno == EINTR);
  return process;
}

// Follows one child and its threads from stop to stop.
class Tracer {
 public:
  Tracer(pid_t child, const OnCall& on_call) : child_(child), on_call_(on_call) {}

  TracedRun Follow() {
    int status = 0;
    Wait(child_, status);
    ptrace(PTRACE_SETOPTIONS, child_, nullptr,
           PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
    threads_[child_];
    Resume(child_, 0);
    while (true) {
      const pid_t thread = Wait(-1, status);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        threads_.erase(thread);
        if (thread == child_) {
          return {.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0};
        }
      } else if (IsTraceStop(status) && !Tell(thread)) {
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
  };

  // It may be gone already, with all others.
  static void Resume(pid_t thread, int signal) { ptrace(PTRACE_SYSCALL, thread, nullptr, signal); }

  // Stops come in pairs: entry, exit.
  bool Tell(pid_t thread) {
    Thread& known = threads_[thread];
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info);
    const bool is_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (is_entry) {
      known = {.entry = ToEntry(thread, info)};
    }
    return on_call_(known.entry, is_entry, known.mark);
  }

  // What the thread is to get: nothing of our own making.
  int SignalOf(pid_t thread, int status) {
    const bool is_new = threads_.try_emplace(thread).second;
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
  const OnCall& on_call_;
  std::map<pid_t, Thread> threads_;
};

TracedRun Follow(pid_t child, const OnCall& on_call) {
  return Tracer(child, on_call).Follow();
}

// A child that waits to be followed.
pid_t Begin(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    // Without the leak check and the test framework's own end.
    _exit(work() ? 0 : 1);
  }
  return child;
}

}  // namespace

bool CallEntry::ChangesFiles() const {
  switch (number) {
    case SYS_openat:
      return (arguments[2] & O_CREAT) != 0;
    case SYS_ioctl:  // a copy that shares its blocks
      return arguments[1] == FICLONE || arguments[1] == FICLONERANGE;
    case SYS_openat2:  // struct open_how begins with the flags
      return (ptrace(PTRACE_PEEKDATA, process, arguments[2], nullptr) & O_CREAT) != 0;
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_copy_file_range:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_truncate:
    case SYS_mknodat:
    case SYS_setxattr:
    case SYS_fsetxattr:
    case SYS_sync_file_range:
    case SYS_sync:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fchmod:
    case SYS_fchmodat:
    case SYS_fchown:
    case SYS_fchownat:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_utimensat:
#ifdef SYS_rename
    case SYS_creat:
    case SYS_link:
    case SYS_chmod:
    case SYS_chown:
    case SYS_rename:
    case SYS_mkdir:
    case SYS_symlink:
    case SYS_unlink:
    case SYS_rmdir:
#endif
      return true;
    default:
      return false;
  }
}

TracedRun KillAtPoint(const std::function<bool()>& work, int point) {
  int points = 0;
  TracedRun run = Follow(Begin(work), [&](const CallEntry& entry, bool is_entry, int& mark) {
    // Not at the exit: the process may be gone where the flags lay.
    if (is_entry) {
      mark = entry.ChangesFiles() ? 1 : 0;
    }
    return mark == 0 || points++ != point;
  });
  run.points = points;
  return run;
}

TracedRun FailCalls(const std::function<bool()>& work,
                    const std::function<int(const CallEntry&)>& error_of) {
  int points = 0;
  TracedRun run = Follow(Begin(work), [&](const CallEntry& entry, bool is_entry, int& mark) {
    if (is_entry) {
      points += entry.ChangesFiles() ? 1 : 0;
      mark = error_of(entry);
    }
    if (mark != 0) {
      is_entry ? Skip(entry.process) : SetResult(entry.process, mark);
    }
    return true;
  });
  run.points = points;
  return run;
}

}  // namespace cachewarm::agent
