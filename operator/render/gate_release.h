// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/affinity.h"

namespace cachewarm::render {

struct GateReleaseSpec {
  const api::Pod& pod;  // `object` holds metadata and spec.{schedulingGates,affinity}
  std::string reason;   // annotation kReleasedAnnotation
  double held_seconds = 0;
  HostRules hosts;
};

// api::gate::ReleasePatch(), with the host rules merged into the pod's own affinity. Tests too that
// this is still the pod's, so the patch fails as a whole (422) where somebody changed it meanwhile.
absl::StatusOr<codec::Json> GateReleasePatch(const GateReleaseSpec& spec);

}  // namespace cachewarm::render
