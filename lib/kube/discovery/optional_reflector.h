// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/statusor.h"
#include "lib/kube/discovery/presence.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::kube {

struct LookTimes {
  Duration known{60'000};   // how often to ask again whether the kind is served
  Duration unknown{5'000};  // after a question that was not answered
};

// A reflector of a kind that the cluster may not have. Asks the API server now and then whether it
// serves the kind (one GET), follows it while it does, and lets go of every object when two answers
// in a row say that it is gone.
// While the kind is absent, or may not be listed, the store counts as synced and is empty. One log
// line for each change of that.
class OptionalReflector {
 public:
  OptionalReflector(const Runtime& runtime, ReflectorOptions options, LookTimes times = {});

  // As Reflector::OnChange().
  void OnChange(Reflector::Handler handler) { reflector_.OnChange(std::move(handler)); }

  // Runs until `stop`; returns within 2 s of it.
  void Run(std::stop_token stop);

  const Reflector& reflector() const { return reflector_; }
  const Store& store() const { return reflector_.store(); }

 private:
  // False when the answer is to be asked for again soon.
  bool Look(std::stop_token stop);
  void Obey(Presence presence);
  void Note(Presence presence);

  Runtime runtime_;
  LookTimes times_;
  Reflector reflector_;
  std::optional<Presence> last_;
  bool doubted_ = false;    // it was there, and the last answer said that it is not
  std::jthread following_;  // runs the reflector while the kind is served
};

}  // namespace cachewarm::kube
