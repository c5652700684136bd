// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"

namespace cachewarm::cli {
namespace {

constexpr int kSignalExitBase = 128;

// The strings of a command, and the null-terminated array of pointers to them that exec requires.
struct CStrings {
  explicit CStrings(std::vector<std::string> owned) : texts(std::move(owned)) {
    for (std::string& text : texts) {
      pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
  }
  std::vector<std::string> texts;
  std::vector<char*> pointers;
};

std::vector<std::string> Assignments(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> assignments;
  assignments.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    assignments.push_back(fmt::format("{}={}", name, value));
  }
  return assignments;
}

absl::StatusOr<pid_t> Spawn(const ChildCommand& command) {
  CStrings words(command.words);
  CStrings environment(Assignments(command.environment));
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  const std::unique_ptr<posix_spawnattr_t, int (*)(posix_spawnattr_t*)> freed(
      &attributes, &::posix_spawnattr_destroy);
  // Reset blocked and ignored signals, so that the command does not inherit them.
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words.pointers[0], nullptr, &attributes,
                                   words.pointers.data(), environment.pointers.data());
  if (error != 0) {
    return fs::ErrnoStatus(error, command.words[0]);
  }
  return child;
}

}  // namespace

absl::StatusOr<int> RunChild(const ChildCommand& command, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const pid_t child, Spawn(command));
  int status = 0;
  {
    const std::stop_callback pass_on(stop, [child] { ::kill(child, SIGTERM); });
    // WNOWAIT: do not reap the child while the callback may still signal its pid.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
  }
  if (::waitpid(child, &status, 0) != child) {
    return fs::ErrnoStatus(errno, command.words[0]);
  }
  return WIFSIGNALED(status) ? kSignalExitBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cachewarm::cli
