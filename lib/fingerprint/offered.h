// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/api/node_cache.h"
#include "lib/fingerprint/node_facts.h"

// Compares the GPUs in the Node object with those that the driver reports. Pure.
namespace cachewarm::fingerprint {

// Returns the vendor, as in a GPU type, of an extended resource whose devices run compiled code:
// "nvidia" for nvidia.com/gpu, nvidia.com/gpu.shared and nvidia.com/mig-...; "amd" for amd.com/gpu.
// Returns "" for all other resources.
std::string_view VendorOf(std::string_view resource);

// True if `resource` stands for GPUs of another vendor than that of `gpu_type`, so the node offers
// devices that its agent does not see.
bool IsHidden(std::string_view resource, std::string_view gpu_type);

// Returns how the labels of GPU feature discovery differ from the GPUs in `facts`; "" if they agree
// or cannot be compared. Compares the product name, the MIG profile if the label
// nvidia.com/gpu.product names one, and nvidia.com/gpu.memory (MiB) within 5 %. With the MIG
// strategy "mixed" both labels describe the whole GPU, so neither profile nor memory is compared.
std::string LabelDifference(const api::NodeOffer& offer, const NodeFacts& facts);

}  // namespace cachewarm::fingerprint
