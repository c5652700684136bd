// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/kill_at_call.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
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

// Called at the entry and at the exit of each call; false kills the process.
using OnCall = std::function<bool(const CallEntry& entry, bool is_entry)>;

void Wait(pid_t child, int& status) {
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

// Follows one child from stop to stop.
TracedRun Follow(pid_t child, const OnCall& on_call) {
  TracedRun run;
  CallEntry entry;
  int status = 0;
  Wait(child, status);
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int signal = 0;
  while (true) {
    if (ptrace(PTRACE_SYSCALL, child, nullptr, signal) != 0) {
      ADD_FAILURE() << "ptrace: " << errno;
      break;
    }
    Wait(child, status);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      run.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      return run;
    }
    signal = IsTraceStop(status) ? 0 : WSTOPSIG(status);
    if (!IsTraceStop(status)) {
      continue;
    }
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
    const bool is_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (is_entry) {
      entry = ToEntry(child, info);
    }
    if (!on_call(entry, is_entry)) {
      break;
    }
  }
  kill(child, SIGKILL);
  Wait(child, status);
  run.was_killed = true;
  return run;
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
  bool in_change = false;
  TracedRun run = Follow(Begin(work), [&](const CallEntry& entry, bool is_entry) {
    // Not at the exit: the process may be gone where the flags lay.
    in_change = is_entry ? entry.ChangesFiles() : in_change;
    return !in_change || points++ != point;
  });
  run.points = points;
  return run;
}

TracedRun FailCalls(const std::function<bool()>& work,
                    const std::function<int(const CallEntry&)>& error_of) {
  int error = 0;
  int points = 0;
  TracedRun run = Follow(Begin(work), [&](const CallEntry& entry, bool is_entry) {
    if (is_entry) {
      points += entry.ChangesFiles() ? 1 : 0;
      error = error_of(entry);
    }
    if (error != 0) {
      is_entry ? Skip(entry.process) : SetResult(entry.process, error);
    }
    return true;
  });
  run.points = points;
  return run;
}

}  // namespace cachewarm::agent
