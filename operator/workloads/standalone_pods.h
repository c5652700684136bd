// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Pods that no workload of lib/api/workload_kinds.h stands for: bare ones, and those that a
// controller of a kind unknown to us makes (a Volcano Job, a PyTorchJob). Pure.
namespace cachewarm::workloads {

// Instead of a warmup's name, for pods that nothing tells from others. No object is named so.
inline constexpr std::string_view kUnlabelled = "-";

struct StandalonePods {
  // By which the pod and later ones like it are known. Empty when it has none.
  std::map<std::string, std::string> labels;
  // Name of the CacheWarmup that stands for them: a function of `labels`; kUnlabelled without any.
  std::string warmup;
};

// What `pod` is one of. Nothing unless the pod asks for an accelerator, is made by nobody or by a
// controller unknown to us that is no DaemonSet and no node, carries no annotation
// cachewarm.io/warm=false, and is not injected for another warmup.
//
// The labels are those that people give: without a prefix, because "automated system components"
// must use one (Kubernetes, Labels and Selectors), but for the few that Kubernetes' controllers
// write without one; and of the recommended labels those that do not change with a release.
std::optional<StandalonePods> StandalonePodsOf(const codec::Json& pod);

}  // namespace cachewarm::workloads
