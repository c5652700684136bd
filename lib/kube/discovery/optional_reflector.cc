// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/discovery/optional_reflector.h"

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::kube {

OptionalReflector::OptionalReflector(const Runtime& runtime, ReflectorOptions options,
                                     CheckIntervals times)
    : runtime_(runtime), times_(times), reflector_(runtime, std::move(options)) {}

void OptionalReflector::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const bool is_known = Check(stop);
    SleepFor(runtime_.clock, is_known ? times_.known : times_.unknown, stop);
  }
  reflector_thread_ = {};
}

bool OptionalReflector::Check(std::stop_token stop) {
  const bool follows = reflector_thread_.joinable();
  const auto presence = LookUp(runtime_.client, reflector_.resource(), !follows, stop);
  if (!presence.ok()) {
    if (!absl::IsCancelled(presence.status())) {
      runtime_.log.Warning(
          "cannot determine whether a kind is served",
          {{"resource", reflector_.resource().plural}, {"err", Message(presence.status())}});
    }
    return false;
  }
  // A kind that was served until now counts as absent only after two answers in a row without it.
  if (follows && *presence != Presence::kServed && !std::exchange(absent_once_, true)) {
    return false;
  }
  absent_once_ = false;
  Apply(*presence);
  return true;
}

void OptionalReflector::Apply(Presence presence) {
  if (presence == Presence::kServed && !reflector_thread_.joinable()) {
    reflector_thread_ = std::jthread([this](std::stop_token ended) { reflector_.Run(ended); });
  } else if (presence != Presence::kServed &&
             (reflector_thread_.joinable() || !last_.has_value())) {
    reflector_thread_ = {};  // joins the thread
    reflector_.Forget();
  }
  LogChange(presence);
}

void OptionalReflector::LogChange(Presence presence) {
  if (std::exchange(last_, presence) == presence) {
    return;
  }
  const LogFields fields = {{"resource", reflector_.resource().plural},
                            {"group", reflector_.resource().group}};
  switch (presence) {
    case Presence::kServed:
      return runtime_.log.Info("kind is served, watching it", fields);
    case Presence::kAbsent:
      return runtime_.log.Info("kind is not served", fields);
    case Presence::kForbidden:
      return runtime_.log.Warning(
          "kind is served, but RBAC forbids listing it: its objects are ignored; grant the "
          "operator "
          "list and watch",
          fields);
  }
}

}  // namespace cachewarm::kube
