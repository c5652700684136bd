// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/affinity.h"

namespace cachewarm::render {

struct GateReleaseSpec {
  const api::Pod& pod;  // its `object` must have metadata and spec.{schedulingGates,affinity}
  std::string reason;   // value of the annotation kReleasedAnnotation
  double held_seconds = 0;
  HostRules hosts;
};

// Returns gate::ReleasePatch() with the host rules merged into the pod's affinity. If that changes
// the affinity, the patch also tests the present affinity, so the API server rejects the whole
// patch (422) if a user has changed it meanwhile.
absl::StatusOr<codec::Json> GateReleasePatch(const GateReleaseSpec& spec);

}  // namespace cachewarm::render
