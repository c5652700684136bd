// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Standalone pods: pods without a workload of lib/api/workload_kinds.h. They are bare, or made by a
// controller of an unsupported kind (a Volcano Job, a PyTorchJob). Pure.
namespace cachewarm::workloads {

// Value of StandalonePods::warmup for pods without distinguishing labels. Not a valid object name.
inline constexpr std::string_view kUnlabelled = "-";

struct StandalonePods {
  // Labels shared by this pod and its successors. Empty if it has none.
  std::map<std::string, std::string> labels;
  // Name of their CacheWarmup, derived from `labels`; kUnlabelled without labels.
  std::string warmup;
};

// Returns the group of standalone pods that `pod` belongs to. Returns nothing unless the pod
// requests an accelerator, has no owner or one of an unsupported kind (neither DaemonSet nor Node),
// has no annotation cachewarm.io/warm=false, and is not injected for another warmup.
//
// Uses labels set by users: those without a prefix (Kubernetes requires a prefix from "automated
// system components", see Labels and Selectors) except the few that Kubernetes' controllers set
// without one, and the recommended labels that do not change with a release.
std::optional<StandalonePods> StandalonePodsOf(const codec::Json& pod);

}  // namespace cachewarm::workloads
