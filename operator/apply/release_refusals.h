// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "operator/model/snapshot.h"

namespace cachewarm::apply {

// Remembers the namespaces in which the API server rejected the release of a held pod, for example
// because an admission policy forbids updates of pods. The plan then adds no gate to new pods of
// the namespace. An entry lasts for model::kReleaseRefusalLasts, or until a release succeeds. State
// is in memory only: a new leader learns it from its first rejected release. Thread-safe.
class ReleaseRefusals {
 public:
  // Calls `on_change` with the namespace, on the recording thread and without a lock, when releases
  // there begin to be rejected or are accepted again. `clock` must outlive this object.
  ReleaseRefusals(const Clock& clock, std::function<void(const std::string& ns)> on_change)
      : clock_(clock), on_change_(std::move(on_change)) {}

  // Records a rejected release; `message` is the API server's error.
  void Record(const std::string& ns, std::string message);
  // Records that a release succeeded.
  void Forget(const std::string& ns);

  // Returns the last rejection in the namespace; its time is zero if there is none.
  model::ReleaseRefusal Of(const std::string& ns) const;

 private:
  const Clock& clock_;
  std::function<void(const std::string& ns)> on_change_;
  mutable std::mutex mutex_;
  std::map<std::string, model::ReleaseRefusal> refusals_;  // by namespace
};

}  // namespace cachewarm::apply
