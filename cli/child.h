// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/signals.h"

namespace cachewarm::cli {

// Exit code of a command that a signal ended: this plus the number of the signal.
inline constexpr int kSignalExitBase = 128;

struct ChildCommand {
  std::vector<std::string> words;                  // program (looked up in PATH) and arguments
  std::map<std::string, std::string> environment;  // all variables of the command
  // Descriptors that become the command's standard output and error.
  int out = 1;
  int err = 2;
  SignalState signals = SignalState::Default();
};

// A running command in the process group of this process, so that it gets the signals of a terminal
// (Ctrl-C) as without cachewarm. If this process is killed, the kernel kills the command too
// (PR_SET_PDEATHSIG); otherwise a server without a parent could keep a GPU.
class Child {
 public:
  // Starts the command. NOT_FOUND if the program does not exist, PERMISSION_DENIED if it cannot be
  // executed. The calling thread must live as long as the command: the kernel kills the command
  // when that thread ends.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const ChildCommand& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends a signal; no effect after the command has ended. Thread-safe.
  void Signal(int number);
  // Waits until the command has ended and returns its exit code, or kSignalExitBase + the signal
  // that killed it. If this process is process 1 of a container, also reaps orphans. Call once.
  absl::StatusOr<int> Wait();

 private:
  Child(pid_t process, std::string name) : process_(process), name_(std::move(name)) {}

  const pid_t process_;
  const std::string name_;
  std::mutex mutex_;
  bool ended_ = false;
};

}  // namespace cachewarm::cli
