// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/codec/json_fwd.h"

namespace cachewarm::api {

// True for devices that engines compile code for: nvidia.com/gpu, nvidia.com/mig-…, amd.com/gpu,
// gpu.intel.com/…, TPUs, Neuron, Gaudi; false for network devices.
bool IsAccelerator(std::string_view resource);

// Returns the number of accelerators that one container requests, summed over all kinds. If it
// requests none as resources, each of its ResourceClaims (dynamic resource allocation) counts as
// one accelerator, because the pod does not show the kind and number of devices behind a claim.
int AcceleratorsOf(const codec::Json& container);

}  // namespace cachewarm::api
