// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/fd.h"
#include "lib/fs/program.h"

namespace cachewarm::cli {
namespace {

constexpr int kNotStarted = 127;

// Sets the signal actions and the signal mask of this thread to those in `state`.
// Async-signal-safe.
void Restore(const SignalState& state) {
  for (int number = 1; number < NSIG; ++number) {
    struct ::sigaction action {};
    action.sa_handler = sigismember(&state.ignored, number) == 1 ? SIG_IGN : SIG_DFL;
    ::sigaction(number, &action, nullptr);  // fails for SIGKILL and SIGSTOP, whose action is fixed
  }
  pthread_sigmask(SIG_SETMASK, &state.blocked, nullptr);
}

// Makes `to` a duplicate of `from` unless they are equal. Returns false if that fails.
bool Redirect(int from, int to) {
  return from == to || ::dup2(from, to) == to;
}

// Runs in the new process after fork(). Makes only async-signal-safe calls, because another thread
// may have held a lock at the time of fork().
[[noreturn]] void Execute(const ChildCommand& command, const fs::ExecStrings& words,
                          const fs::ExecStrings& environment, pid_t parent, int report) {
  Restore(command.signals);
  const bool bound = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
  if (bound && Redirect(command.out, STDOUT_FILENO) && Redirect(command.err, STDERR_FILENO)) {
    ::execvpe(words.pointers()[0], words.pointers(), environment.pointers());
  }
  const int error = bound ? errno : ESRCH;
  static_cast<void>(!::write(report, &error, sizeof(error)));
  ::_exit(kNotStarted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const ChildCommand& command) {
  const fs::ExecStrings words(command.words);
  const fs::ExecStrings environment(command.environment);
  std::array<int, 2> ends{};
  // A successful exec closes the pipe; otherwise the child writes the error to it.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fs::ErrnoStatus(errno, "pipe");
  }
  const fs::Fd report(ends[0]);
  fs::Fd write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    Execute(command, words, environment, parent, write_end.get());
  }
  if (child < 0) {
    return fs::ErrnoStatus(errno, command.words[0]);
  }
  write_end = fs::Fd();
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(report.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  if (got == sizeof(error)) {
    ::waitpid(child, nullptr, 0);
    return fs::ErrnoStatus(error, command.words[0]);
  }
  return std::unique_ptr<Child>(new Child(child, command.words[0]));
}

void Child::Signal(int number) {
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    ::kill(process_, number);
  }
}

absl::StatusOr<int> Child::Wait() {
  // Process 1 of a container inherits orphans and must reap them. Any other process must not reap
  // children that other code has started.
  const idtype_t which = ::getpid() == 1 ? P_ALL : P_PID;
  while (true) {
    // WNOWAIT: the pid stays valid for Signal() until it is reaped under the lock.
    siginfo_t ended{};
    if (::waitid(which, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) {
        continue;
      }
      return fs::ErrnoStatus(errno, name_);
    }
    const std::lock_guard lock(mutex_);
    int status = 0;
    if (::waitpid(ended.si_pid, &status, 0) != ended.si_pid) {
      return fs::ErrnoStatus(errno, name_);
    }
    if (ended.si_pid == process_) {
      ended_ = true;
      return WIFSIGNALED(status) ? kSignalExitBase + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace cachewarm::cli
