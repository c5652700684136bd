// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/offer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/api/json/limits.h"
#include "lib/fingerprint/offered.h"

namespace cachewarm::plan {
namespace {

// Labels that GPU feature discovery sets on Nodes, sorted by name.
constexpr std::string_view kLabels[] = {"nvidia.com/gpu.memory", "nvidia.com/gpu.product"};

// Returns the devices in up-to-date slices, each kind once.
std::vector<api::PublishedDevices> Published(const std::vector<api::ResourceSlice>& slices) {
  std::map<std::string, int64_t> generations;
  for (const api::ResourceSlice& slice : slices) {
    int64_t& newest = generations.try_emplace(slice.pool, slice.pool_generation).first->second;
    newest = std::max(newest, slice.pool_generation);
  }
  std::map<std::tuple<std::string, std::string, std::string>, int> kinds;
  for (const api::ResourceSlice& slice : slices) {
    if (slice.driver != fingerprint::kNvidiaDraDriver ||
        slice.pool_generation != generations.at(slice.pool)) {
      continue;
    }
    for (const api::SliceDevice& device : slice.devices) {
      ++kinds[{slice.driver, device.product.substr(0, api::json::kDeviceAttributeBytes),
               device.compute_capability.substr(0, api::json::kDeviceAttributeBytes)}];
    }
  }
  std::vector<api::PublishedDevices> out;
  for (const auto& [kind, count] : kinds) {
    if (out.size() < api::json::kPublishedDevicesMax) {
      out.push_back({.driver = std::get<0>(kind),
                     .product = std::get<1>(kind),
                     .compute_capability = std::get<2>(kind),
                     .count = count});
    }
  }
  return out;
}

}  // namespace

api::NodeOffer OfferOf(const api::Node& node, const std::vector<api::ResourceSlice>& slices) {
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
  offer.published = Published(slices);
  return offer;
}

bool IsGpuUnknown(const api::NodeStatus& facts) {
  return facts.gpu_type.empty() && facts.devices == 0 && !facts.cpu_class.empty();
}

std::string HiddenDevice(const api::Node& node, const std::vector<api::PublishedDevices>& published,
                         std::string_view gpu_type) {
  for (const auto& [resource, count] : node.allocatable) {
    if (count > 0 && fingerprint::IsHidden(resource, gpu_type)) {
      return resource;
    }
  }
  for (const api::PublishedDevices& each : published) {
    if (fingerprint::IsHidden(each.driver, gpu_type)) {
      return each.driver;
    }
  }
  return {};
}

}  // namespace cachewarm::plan
