// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Finds standalone pods: pods without an owner, or with an owner of an unsupported kind (a Volcano
// Job, a PyTorchJob). lib/api/workload_kinds.h lists the supported kinds. Pure.
namespace cachewarm::workloads {

// Value of StandalonePods::warmup for pods without distinguishing labels. It is not a valid object
// name, so no CacheWarmup has it.
inline constexpr std::string_view kUnlabelled = "-";

struct StandalonePods {
  // Labels that this pod and its successors have in common. Empty if there are none.
  std::map<std::string, std::string> labels;
  // Name of the CacheWarmup of these pods, derived from `labels`; kUnlabelled without labels.
  std::string warmup;
};

// Returns the group of standalone pods that `pod` belongs to. Returns nullopt if the pod
//  - requests no accelerator,
//  - belongs to a supported workload, a builder Job, a DaemonSet or a Node,
//  - has the annotation cachewarm.io/warm=false, or
//  - is injected for another warmup.
//
// Groups pods by the labels that users set: labels without a prefix, because Kubernetes requires a
// prefix from "automated system components" (see Labels and Selectors). Excludes the few labels
// that Kubernetes' controllers set without a prefix. Also uses those recommended labels
// (app.kubernetes.io/...) that do not change with a release.
std::optional<StandalonePods> StandalonePodsOf(const codec::Json& pod);

}  // namespace cachewarm::workloads
