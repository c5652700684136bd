// SPDX-License-Identifier: Apache-2.0
#include "operator/render/gate_release.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/patch.h"

namespace cachewarm::render {

using codec::Json;

namespace {

constexpr const char* kAffinity = "/spec/affinity";

}  // namespace

absl::StatusOr<Json> GateReleasePatch(const GateReleaseSpec& spec) {
  CW_ASSIGN_OR_RETURN(
      Json patch,
      gate::ReleasePatch(spec.pod, {.reason = spec.reason, .held_seconds = spec.held_seconds}));
  const Json* affinity =
      spec.pod.object == nullptr ? nullptr : codec::At(*spec.pod.object, {"spec", "affinity"});
  const Json present = affinity != nullptr ? *affinity : Json();
  Json wanted = WithHostRules(present, spec.hosts);
  if (wanted != (present.is_null() ? Json::object() : present)) {
    // Test the present affinity, because users may change the affinity of a gated pod. In the
    // operation "test", the API server treats an absent member as null.
    patch.push_back({{"op", "test"}, {"path", kAffinity}, {"value", present}});
    patch.push_back({{"op", "add"}, {"path", kAffinity}, {"value", std::move(wanted)}});
  }
  return patch;
}

}  // namespace cachewarm::render
