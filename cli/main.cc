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
#include "cli/run/time_limit.h"
#include "cli/signals.h"
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

// Blocks the signals that "run" forwards, and returns `signals` with these added.
sigset_t BlockForwardedSignals(sigset_t signals) {
  for (const int number : kForwardedSignals) {
    sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Main(const std::vector<std::string>& words) {
  const SignalState inherited = SignalState::Read();
  // Read before PrepareProcess() adds variables that only this process may have.
  const std::map<std::string, std::string> environment = EnvironmentOf(environ);
  const bool forwards = !words.empty() && words[0] == "run";
  sigset_t signals = process::BlockSignals();
  if (forwards) {
    signals = BlockForwardedSignals(signals);
  }
  http::PrepareProcess();
  std::stop_source stop;
  SignalRelay relay;
  std::atomic<bool> done = false;
  std::jthread waiter([&] {
    siginfo_t received{};
    while (true) {
      const int signal = sigwaitinfo(&signals, &received);
      if (done) {
        return;
      }
      if (signal <= 0) {
        continue;  // EINTR: this process was stopped and continued
      }
      if (forwards) {
        relay.Deliver({.number = signal, .from_terminal = received.si_code == SI_KERNEL});
      } else if (!stop.request_stop()) {
        std::_Exit(kInterrupted);  // second signal: exit without cleanup, which is safe
      }
    }
  });
  Console console{.out = std::cout,
                  .err = std::cerr,
                  .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                  .clock = SystemClock(),
                  .stop = stop.get_token(),
                  .environment = environment,
                  .terminal = ::isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : -1,
                  .signals = forwards ? &relay : nullptr,
                  .inherited = inherited,
                  .out_is_terminal = ::isatty(STDOUT_FILENO) == 1};
  const int code = RunProgram(words, console);
  std::cout.flush();
  if (AbandonedThreads() > 0) {
    std::_Exit(code);  // a thread hangs in a system call and uses what destructors would free
  }
  done = true;
  // Wakes the waiter, which blocks SIGTERM and receives it with sigwaitinfo().
  pthread_kill(waiter.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  return code;
}

}  // namespace
}  // namespace cachewarm::cli

int main(int argc, char** argv) {
  return cachewarm::cli::Main({argv + 1, argv + argc});
}
