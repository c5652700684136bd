// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/api/node_cache.h"
#include "lib/fingerprint/node_facts.h"

// Compares the GPUs in the Node object with those that the driver reports. Pure.
namespace cachewarm::fingerprint {

// The driver of NVIDIA's GPUs in ResourceSlices (Dynamic Resource Allocation).
inline constexpr std::string_view kNvidiaDraDriver = "gpu.nvidia.com";

// Returns the vendor, as in a GPU type, of an extended resource or a driver of ResourceSlices whose
// devices run compiled code: "nvidia" for nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-...
// and kNvidiaDraDriver; "amd" for amd.com/gpu. Returns "" for everything else.
std::string_view VendorOf(std::string_view resource);

// True if `resource` stands for GPUs of another vendor than that of `gpu_type`, so the node offers
// devices that its agent does not see.
bool IsHidden(std::string_view resource, std::string_view gpu_type);

// Returns how the labels of GPU feature discovery differ from the GPUs in `facts`; "" if they agree
// or cannot be compared. Compares the product name, the MIG profile if the label
// nvidia.com/gpu.product names one, and nvidia.com/gpu.memory (MiB) within 5 %. With the MIG
// strategy "mixed" both labels describe the whole GPU, so neither profile nor memory is compared.
std::string LabelDifference(const api::NodeOffer& offer, const NodeFacts& facts);

// Returns how the devices in the ResourceSlices of NVIDIA's driver differ from the GPUs in `facts`:
// the first kind whose product name or compute capability no GPU has; "" if there is none or the
// driver reports no NVIDIA GPU. A driver need not publish every GPU, and may publish MIG profiles
// that it only creates for a claim, so neither missing kinds nor profiles are compared.
std::string SliceDifference(const api::NodeOffer& offer, const NodeFacts& facts);

}  // namespace cachewarm::fingerprint
