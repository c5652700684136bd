// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"

namespace cachewarm::plan {

// Returns the value of spec.node for the node's NodeCache: the accelerators that the node's API
// objects show. These are its extended resources for GPUs (fingerprint::VendorOf), its labels from
// GPU feature discovery, and the devices in `slices`, the node's ResourceSlices of
// fingerprint::kNvidiaDraDriver; the agent compares them with the devices that its driver reports.
// Of a pool, only slices of the highest generation count. Pure.
api::NodeOffer OfferOf(const api::Node& node, const std::vector<api::ResourceSlice>& slices);

// Returns a device that the node offers but that the GPU type `gpu_type`, which its agent reported,
// does not include: the first such extended resource of kubelet, else the first such driver in
// `published`; "" if there is none. A node with such a device gets no bundle: its agent does not
// see the driver, and the type, mostly "cpu", would be wrong.
std::string HiddenDevice(const api::Node& node, const std::vector<api::PublishedDevices>& published,
                         std::string_view gpu_type);

// True while the agent has no GPU type because the driver has not answered since the agent started.
// The node then keeps the bundles and the builders that it has. False for a node with several kinds
// of GPU: its agent reports no GPU type either, but it reports devices.
bool IsGpuUnknown(const api::NodeStatus& facts);

}  // namespace cachewarm::plan
