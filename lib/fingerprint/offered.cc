// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/offered.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "fmt/format.h"

namespace cachewarm::fingerprint {
namespace {

constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
constexpr std::string_view kMemoryLabel = "nvidia.com/gpu.memory";
constexpr uint64_t kMiB = uint64_t{1} << 20U;

std::string_view LabelValue(const api::NodeOffer& offer, std::string_view name) {
  for (const api::NodeLabel& label : offer.labels) {
    if (label.name == name) {
      return label.value;
    }
  }
  return {};
}

// Returns the part of a GPU type with this index: 0 is the vendor, 1 the name, 3 the MIG profile.
std::string_view PartOf(std::string_view type, int index) {
  for (; index > 0; --index) {
    const size_t slash = type.find('/');
    if (slash == std::string_view::npos) {
      return {};
    }
    type.remove_prefix(slash + 1);
  }
  return type.substr(0, type.find('/'));
}

bool DiffersInMemory(std::string_view mebibytes, uint64_t bytes) {
  uint64_t labeled = 0;
  const auto [end, error] =
      std::from_chars(mebibytes.data(), mebibytes.data() + mebibytes.size(), labeled);
  if (error != std::errc() || end != mebibytes.data() + mebibytes.size() || labeled == 0) {
    return false;
  }
  const uint64_t reported = bytes / kMiB;
  const uint64_t distance = labeled > reported ? labeled - reported : reported - labeled;
  return distance > labeled / 20;
}

// Parses "9.0.0" or "9.0" into the compute capability of `device`; unchanged for other text.
void ReadCapability(std::string_view version, GpuDevice& device) {
  const char* end = version.data() + version.size();
  int major = 0;
  int minor = 0;
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') {
    return;
  }
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error == std::errc() && (rest == end || *rest == '.')) {
    device.sm_major = major;
    device.sm_minor = minor;
  }
}

// True if the GPU type `type` has the product name and, if it is known, the architecture of
// `device`.
bool IsOfKind(std::string_view type, const GpuDevice& device) {
  const std::string published = GpuTypeOf(device);
  return PartOf(type, 0) == "nvidia" && PartOf(type, 1) == PartOf(published, 1) &&
         (device.sm_major == 0 || PartOf(type, 2) == PartOf(published, 2));
}

}  // namespace

std::string_view VendorOf(std::string_view resource) {
  for (const std::string_view name :
       {std::string_view("nvidia.com/gpu"), std::string_view("nvidia.com/gpu.shared"),
        kNvidiaDraDriver}) {
    if (resource == name) {
      return "nvidia";
    }
  }
  if (resource.starts_with("nvidia.com/mig-")) {
    return "nvidia";
  }
  return resource == "amd.com/gpu" ? "amd" : std::string_view();
}

bool IsHidden(std::string_view resource, std::string_view gpu_type) {
  const std::string_view vendor = VendorOf(resource);
  return !vendor.empty() && PartOf(gpu_type, 0) != vendor;
}

std::string LabelDifference(const api::NodeOffer& offer, const NodeFacts& facts) {
  const std::string_view product = LabelValue(offer, kProductLabel);
  if (product.empty() || PartOf(facts.gpu_type, 0) != "nvidia" || facts.gpu_kinds.size() != 1) {
    return {};
  }
  const std::string labeled = GpuTypeOf(GpuDevice{.name = std::string(product)});
  const std::string_view labeled_mig = PartOf(labeled, 3);
  const std::string_view reported_mig = PartOf(facts.gpu_type, 3);
  if (PartOf(labeled, 1) != PartOf(facts.gpu_type, 1) ||
      (!labeled_mig.empty() && labeled_mig != reported_mig)) {
    return fmt::format("the label {} is {}, but the driver reports {}", kProductLabel, product,
                       facts.gpu_type);
  }
  const std::string_view memory = LabelValue(offer, kMemoryLabel);
  if (labeled_mig == reported_mig && facts.gpu_memory_bytes > 0 &&
      DiffersInMemory(memory, facts.gpu_memory_bytes)) {
    return fmt::format("the label {} is {} MiB, but the driver reports {} MiB", kMemoryLabel,
                       memory, facts.gpu_memory_bytes / kMiB);
  }
  return {};
}

std::string SliceDifference(const api::NodeOffer& offer, const NodeFacts& facts) {
  if (PartOf(facts.gpu_type, 0) != "nvidia") {
    return {};
  }
  for (const api::PublishedDevices& each : offer.published) {
    GpuDevice device{.name = each.product};
    ReadCapability(each.compute_capability, device);
    if (each.driver == kNvidiaDraDriver && !each.product.empty() &&
        std::none_of(facts.gpu_kinds.begin(), facts.gpu_kinds.end(),
                     [&](const std::string& type) { return IsOfKind(type, device); })) {
      return fmt::format(
          "a ResourceSlice of {} lists {} (compute capability {}), but the driver "
          "reports {}",
          each.driver, each.product,
          each.compute_capability.empty() ? "not stated" : each.compute_capability, facts.gpu_type);
    }
  }
  return {};
}

}  // namespace cachewarm::fingerprint
