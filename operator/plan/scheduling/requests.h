// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/codec/json_fwd.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::plan {

// Returns api::PodRequests(), with "pods": 1.
Resources RequestsOf(const codec::Json& pod_spec);

// Returns the number of accelerators that one container requests, summed over all kinds. If it
// requests none as resources, each of its ResourceClaims (dynamic resource allocation) counts as
// one accelerator, because the pod does not show the kind and number of devices behind a claim.
int AcceleratorsOf(const codec::Json& container);

}  // namespace cachewarm::plan
