// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::model {

// Returns api::PodRequests(), with "pods": 1.
api::Resources RequestsOf(const codec::Json& pod_spec);

}  // namespace cachewarm::model
