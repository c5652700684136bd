// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/offer.h"

#include <algorithm>

#include "lib/api/json/limits.h"
#include "lib/fingerprint/offered.h"

namespace cachewarm::plan {
namespace {

// Labels that GPU feature discovery sets on Nodes, sorted by name.
constexpr std::string_view kLabels[] = {"nvidia.com/gpu.memory", "nvidia.com/gpu.product"};

}  // namespace

api::NodeOffer OfferOf(const api::Node& node) {
  api::NodeOffer offer;
  for (const auto& [resource, count] : node.allocatable) {
    if (count > 0 && !fingerprint::VendorOf(resource).empty() &&
        offer.devices.size() < api::json::kOfferedDevicesMax) {
      const int64_t most = api::json::kCountMax;
      offer.devices.push_back(
          {.resource = resource, .count = static_cast<int>(std::min(count, most))});
    }
  }
  for (const std::string_view name : kLabels) {
    if (const auto found = node.meta.labels.find(name); found != node.meta.labels.end()) {
      offer.labels.push_back({.name = std::string(name), .value = std::string(found->second)});
    }
  }
  return offer;
}

bool IsGpuUnknown(const api::NodeStatus& facts) {
  return facts.gpu_type.empty() && facts.devices == 0 && !facts.cpu_class.empty();
}

std::string HiddenDevice(const api::Node& node, std::string_view gpu_type) {
  for (const auto& [resource, count] : node.allocatable) {
    if (count > 0 && fingerprint::IsHidden(resource, gpu_type)) {
      return resource;
    }
  }
  return {};
}

}  // namespace cachewarm::plan
