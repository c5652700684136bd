// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <vector>

namespace cachewarm::cli {

// The signals that "run" passes on to its command.
inline constexpr int kForwardedSignals[] = {SIGTERM, SIGINT,  SIGHUP,  SIGUSR1,
                                            SIGUSR2, SIGQUIT, SIGWINCH};

// Blocked and ignored signals of a process. A child gets those with which this program started, so
// that "nohup" and "&" of a shell act on it as without cachewarm.
struct SignalState {
  sigset_t blocked;
  sigset_t ignored;

  // Reads the state of the calling thread. Call in main before anything changes it.
  static SignalState Read();
  // Returns a state in which no signal is blocked or ignored.
  static SignalState Default();
};

// One signal that this process received.
struct ReceivedSignal {
  int number = 0;
  // True if a terminal caused the signal, for example by Ctrl-C. The kernel then sends it to every
  // process of the foreground group, so the child has received it already.
  bool from_terminal = false;
};

// Passes signals from the thread in main that waits for them to the verb that forwards them.
// Thread-safe.
class SignalRelay {
 public:
  using Receiver = std::function<void(const ReceivedSignal&)>;

  // Sets the receiver, and passes it the signals that arrived earlier, in their order. Deliver()
  // calls the receiver, one call at a time. After this call the previous receiver is not called
  // again.
  void Receive(Receiver receiver);
  void Deliver(const ReceivedSignal& signal);

 private:
  std::mutex mutex_;
  Receiver receiver_;
  std::vector<ReceivedSignal> early_;
};

}  // namespace cachewarm::cli
