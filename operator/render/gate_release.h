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

// The JSON patch (RFC 6902) that releases our gate: tests the pod's uid and that our gate is where
// it was, removes it, merges the affinity into the pod's own, and notes why. It fails as a whole
// (409 or 422) when the pod has changed in between. NOT_FOUND when the pod has no gate of ours.
absl::StatusOr<codec::Json> GateReleasePatch(const GateReleaseSpec& spec);

}  // namespace cachewarm::render
