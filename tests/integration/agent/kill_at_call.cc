// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/kill_at_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace cachewarm::agent {
namespace {

bool IsTraceStop(int status) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

// Calls after which the disk may be another than before. An open counts when it may create.
bool ChangesFiles(pid_t child, const __ptrace_syscall_info& info) {
  switch (info.entry.nr) {
    case SYS_openat:
      return (info.entry.args[2] & O_CREAT) != 0;
    case SYS_openat2:  // struct open_how begins with the flags
      return (ptrace(PTRACE_PEEKDATA, child, info.entry.args[2], nullptr) & O_CREAT) != 0;
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

// Follows one child from stop to stop and counts.
class Tracer {
 public:
  Tracer(pid_t child, int point) : child_(child), point_(point) {}

  TracedRun Follow() {
    int status = 0;
    Wait(status);
    ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    int signal = 0;
    while (true) {
      if (ptrace(PTRACE_SYSCALL, child_, nullptr, signal) != 0) {
        ADD_FAILURE() << "ptrace: " << errno;
        break;
      }
      Wait(status);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        run_.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        return run_;
      }
      signal = IsTraceStop(status) ? 0 : WSTOPSIG(status);
      if (IsTraceStop(status) && IsPoint() && run_.points++ == point_) {
        break;
      }
    }
    kill(child_, SIGKILL);
    Wait(status);
    run_.was_killed = true;
    return run_;
  }

 private:
  void Wait(int& status) const {
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  // Stops come in pairs: entry, exit.
  bool IsPoint() {
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof(info), &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      in_change_ = ChangesFiles(child_, info);
    }
    return in_change_;
  }

  pid_t child_;
  int point_;
  bool in_change_ = false;
  TracedRun run_;
};

}  // namespace

TracedRun KillAtPoint(const std::function<bool()>& work, int point) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    // Without the leak check and the test framework's own end.
    _exit(work() ? 0 : 1);
  }
  return Tracer(child, point).Follow();
}

}  // namespace cachewarm::agent
