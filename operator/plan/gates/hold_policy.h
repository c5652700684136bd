// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "operator/plan/context.h"

// Decides whether pods of a workload may be held at all. Pure.
namespace cachewarm::plan {

// The nodes that the release of a pod adds as preferred ones.
enum class ReleasePreference {
  kNone,
  kWarmNodes,     // the warm nodes, unless all candidates are warm
  kBuilderNodes,  // the nodes with the GPU type and CPU class of the build
};

// One row of the decision table of gates: a workload for which `applies` is true is never held.
struct WorkloadRule {
  std::string_view when;  // for docs/reference/gates.md
  bool (*applies)(const RolloutConstraints& constraints, const TemplateView& pod_template);
  std::string_view reason;  // api::reason::kReleased…
  ReleasePreference preference = ReleasePreference::kWarmNodes;
};

// The rows, in the order in which they are judged. The first that applies decides.
std::span<const WorkloadRule> WorkloadRules();

// True if fewer pods are available than status.minAvailable.
bool IsBelowMinAvailable(const Context& context);

}  // namespace cachewarm::plan
