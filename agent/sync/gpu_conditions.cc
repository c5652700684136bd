// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/gpu_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/fingerprint/offered.h"

namespace cachewarm::agent {
namespace {

namespace reason = api::reason;

constexpr std::string_view kNvidiaRemedy =
    "set agent.runtimeClassName to the NVIDIA runtime class, so that the agent gets the driver's "
    "libraries and devices, or set agent.driverRoots, or declare gpuType in the node facts file";
constexpr std::string_view kAmdRemedy =
    "load the amdgpu driver on the node, or declare gpuType in the node facts file";

// Devices that the agent should see.
struct Expected {
  std::string name;  // of an extended resource, or of a driver of ResourceSlices
  int count = 0;
  std::string_view source;
};

std::vector<Expected> ExpectedDevices(const api::NodeOffer& offer) {
  std::vector<Expected> out;
  for (const api::OfferedDevices& each : offer.devices) {
    out.push_back({.name = each.resource, .count = each.count, .source = "kubelet offers"});
  }
  for (const api::PublishedDevices& each : offer.published) {
    out.push_back({.name = each.driver, .count = each.count, .source = "ResourceSlices list"});
  }
  return out;
}

api::ConditionUpdate EvaluateVisible(const GpuObservation& gpu, const api::NodeOffer& offer) {
  const std::vector<Expected> expected = ExpectedDevices(offer);
  const auto hidden = std::find_if(expected.begin(), expected.end(), [&](const auto& devices) {
    return devices.count > 0 && fingerprint::IsHidden(devices.name, gpu.facts.gpu_type);
  });
  if (hidden == expected.end()) {
    return {.reason = std::string(reason::kDevicesVisible),
            .message = "the agent sees every kind of GPU that the node offers"};
  }
  std::string sees = fmt::format("the agent finds none (GPU type {}; source {})",
                                 gpu.facts.gpu_type, gpu.facts.gpu_source);
  if (gpu.is_gpu_unknown) {
    sees = gpu.probe_error.empty()
               ? std::string("the driver has not answered yet")
               : fmt::format("the driver does not answer ({})", gpu.probe_error);
  }
  return {.holds = true,
          .reason = std::string(reason::kDriverNotVisible),
          .message = fmt::format(
              "{} {} {} on this node, but {}; the node gets no bundle "
              "and no pod is held for it; {}",
              hidden->source, hidden->count, hidden->name, sees,
              fingerprint::VendorOf(hidden->name) == "amd" ? kAmdRemedy : kNvidiaRemedy)};
}

api::ConditionUpdate EvaluateProbe(const GpuObservation& gpu) {
  if (gpu.probe_error.empty()) {
    return {.reason = std::string(reason::kDriverAnswered), .message = "the GPU driver answered"};
  }
  const std::string effect =
      gpu.is_gpu_unknown
          ? "the node gets no new bundle until the driver answers"
          : fmt::format("the last known GPU type {} stays in use", gpu.facts.gpu_type);
  return {.holds = true,
          .reason = std::string(reason::kDriverNotAnswering),
          .message =
              fmt::format("{}; {}; run nvidia-smi or rocm-smi on the node, and repair the driver "
                          "or restart the node if it fails too",
                          gpu.probe_error, effect)};
}

api::ConditionUpdate EvaluateKinds(const GpuObservation& gpu) {
  if (!fingerprint::HasMixedKinds(gpu.facts)) {
    return {.reason = std::string(reason::kKindsEqual),
            .message = "the node has at most one kind of GPU"};
  }
  return {
      .holds = true,
      .reason = std::string(reason::kKindsDiffer),
      .message = fmt::format("the GPUs of this node differ ({}), and a pod may get any of them; "
                             "the node gets no bundle; use one model and one MIG profile per "
                             "node, or declare gpuType in the node facts file",
                             fmt::join(gpu.facts.gpu_kinds, ", "))};
}

api::ConditionUpdate EvaluateLabels(const GpuObservation& gpu, const api::NodeOffer& offer) {
  constexpr std::string_view kUsed = "cachewarm uses the driver's report";
  if (const std::string label = fingerprint::LabelDifference(offer, gpu.facts); !label.empty()) {
    return {.holds = true,
            .reason = std::string(reason::kLabelsDiffer),
            .message = fmt::format("{}; {}; restart GPU feature discovery on the node, and remove "
                                   "the label if it was set by hand",
                                   label, kUsed)};
  }
  if (const std::string slice = fingerprint::SliceDifference(offer, gpu.facts); !slice.empty()) {
    return {
        .holds = true,
        .reason = std::string(reason::kLabelsDiffer),
        .message = fmt::format("{}; {}; restart the DRA driver's pod on the node", slice, kUsed)};
  }
  return {.reason = std::string(reason::kLabelsAgree),
          .message = "no label and no ResourceSlice of the node contradicts the driver"};
}

}  // namespace

std::string ReportedGpuType(const GpuObservation& gpu) {
  return gpu.is_gpu_unknown || fingerprint::HasMixedKinds(gpu.facts) ? std::string()
                                                                     : gpu.facts.gpu_type;
}

std::vector<api::Condition> GpuConditions(const std::vector<api::Condition>& before,
                                          const GpuObservation& gpu, const api::NodeOffer& offer,
                                          WallTime now) {
  const std::pair<std::string_view, api::ConditionUpdate> updates[] = {
      {api::kGpuNotVisible, EvaluateVisible(gpu, offer)},
      {api::kGpuProbeFailed, EvaluateProbe(gpu)},
      {api::kGpuKindsMixed, EvaluateKinds(gpu)},
      {api::kGpuLabelsDiffer, EvaluateLabels(gpu, offer)}};
  std::vector<api::Condition> out;
  for (const auto& [type, update] : updates) {
    const api::Condition* known = api::FindCondition(before, type);
    if (known != nullptr) {
      out.push_back(*known);
    }
    if (known != nullptr || update.holds) {
      api::SetCondition(out, type, update, 0, now);
    }
  }
  return out;
}

}  // namespace cachewarm::agent
