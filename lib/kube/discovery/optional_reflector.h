// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/statusor.h"
#include "lib/kube/discovery/presence.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::kube {

struct CheckIntervals {
  Duration known{60'000};   // time until the next check after a successful one
  Duration unknown{5'000};  // time until the next check after a failed one
};

// A reflector of a kind that the cluster may lack. Checks regularly (one GET) whether the API
// server serves the kind. While it does, keeps the store up to date. After two answers in a row
// without the kind, removes every object. While the kind is absent or may not be listed, the store
// counts as synced and is empty. Writes one log line per appearance or disappearance of the kind.
class OptionalReflector {
 public:
  OptionalReflector(const Runtime& runtime, ReflectorOptions options, CheckIntervals times = {});

  // See Reflector::OnChange().
  void OnChange(Reflector::Handler handler) { reflector_.OnChange(std::move(handler)); }

  // Runs until `stop` is requested; returns within 2 s of that.
  void Run(std::stop_token stop);

  const Reflector& reflector() const { return reflector_; }
  const Store& store() const { return reflector_.store(); }

 private:
  // Makes one check and applies its result. Returns false if the check must be repeated soon.
  bool Check(std::stop_token stop);
  void Apply(Presence presence);
  void LogChange(Presence presence);

  Runtime runtime_;
  CheckIntervals times_;
  Reflector reflector_;
  std::optional<Presence> last_;
  bool absent_once_ = false;       // the kind was served, but the last answer lacks it
  std::jthread reflector_thread_;  // runs the reflector while the kind is served
};

}  // namespace cachewarm::kube
