// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <pthread.h>

#include <utility>

namespace cachewarm::cli {

SignalState SignalState::Read() {
  SignalState state = Default();
  pthread_sigmask(SIG_SETMASK, nullptr, &state.blocked);
  for (int number = 1; number < NSIG; ++number) {
    struct ::sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      sigaddset(&state.ignored, number);
    }
  }
  return state;
}

SignalState SignalState::Default() {
  SignalState state{};
  sigemptyset(&state.blocked);
  sigemptyset(&state.ignored);
  return state;
}

void SignalRelay::Receive(Receiver receiver) {
  const std::lock_guard lock(mutex_);
  receiver_ = std::move(receiver);
  if (receiver_) {
    for (const ReceivedSignal& each : std::exchange(early_, {})) {
      receiver_(each);
    }
  }
}

void SignalRelay::Deliver(const ReceivedSignal& signal) {
  const std::lock_guard lock(mutex_);
  if (receiver_) {
    receiver_(signal);
  } else {
    early_.push_back(signal);
  }
}

}  // namespace cachewarm::cli
