// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "cli/console.h"
#include "cli/verbs.h"
#include "lib/http/client.h"
#include "lib/process/process.h"

namespace cachewarm::cli {
namespace {

std::map<std::string, std::string> EnvironmentOf(char** variables) {
  std::map<std::string, std::string> environment;
  for (; *variables != nullptr; ++variables) {
    const std::string text = *variables;
    const size_t equals = text.find('=');
    environment[text.substr(0, equals)] = equals == text.npos ? "" : text.substr(equals + 1);
  }
  return environment;
}

int Main(const std::vector<std::string>& words) {
  const sigset_t signals = process::BlockSignals();
  http::PrepareProcess();
  std::stop_source stop;
  std::atomic<bool> done = false;
  std::jthread waiter([&] {
    int signal = 0;
    while (sigwait(&signals, &signal) == 0 && !done) {
      if (!stop.request_stop()) {
        std::_Exit(kInterrupted);  // second signal: exit at once; no cleanup is needed
      }
    }
  });
  Console console{.out = std::cout,
                  .err = std::cerr,
                  .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                  .clock = SystemClock(),
                  .stop = stop.get_token(),
                  .environment = EnvironmentOf(environ)};
  const int code = RunProgram(words, console);
  std::cout.flush();
  done = true;
  // Wakes the waiter, which receives the blocked SIGTERM with sigwait().
  pthread_kill(waiter.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  return code;
}

}  // namespace
}  // namespace cachewarm::cli

int main(int argc, char** argv) {
  return cachewarm::cli::Main({argv + 1, argv + argc});
}
