// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/start_cause.h"

#include <vector>

#include "operator/factors/cause.h"

namespace cachewarm::plan {

factors::StartFactors StartFactorsOf(const Context& context, const PodView& pod,
                                     const NodeState& node) {
  if (pod.pod->object == nullptr || node.cache == nullptr) {
    return {};
  }
  const api::NodeStatus& facts = node.cache->status.node;
  return factors::FactorsOf(
      {.container = factors::FindStartedContainer(*pod.pod->object, pod.factors.container),
       .image = pod.factors.image,
       .devices = pod.factors.devices,
       .container_name = pod.factors.container,
       .gpu_type = facts.gpu_type,
       .cpu_class = facts.cpu_class,
       .driver = facts.driver},
      pod.pod->node, context.in.factor_salt);
}

std::string WhyCompiled(const PlanContext& context, const CountedStart& start) {
  if (!start.pod.injected) {
    return "";
  }
  const factors::StartFactors own = StartFactorsOf(context, start.pod, start.node);
  if (own.empty()) {
    return "";
  }
  const Bundles& bundles = context.builds.bundles;
  const LiveKey* key = FindKey(context, start.node.target, start.pod.factors);
  const api::BundleStatus* serving = key == nullptr ? nullptr : bundles.For(*key);
  const bool serves = serving != nullptr && serving->published_time < start.started;
  // The pod itself may have built a later bundle.
  std::vector<api::BundleStatus> earlier = bundles.published();
  std::erase_if(
      earlier, [&](const api::BundleStatus& each) { return each.published_time >= start.started; });
  const auto cause = factors::FindCause(
      {.result = start.sample.result,
       .node = start.sample.node,
       .factors = own,
       .engine_factors = start.evidence == nullptr ? std::vector<std::string>()
                                                   : start.evidence->differing_key_factors,
       .bundle = serves ? serving : factors::ClosestBundle(earlier, own),
       .serves = serves,
       .was_active = start.had_bundle});
  return cause.has_value() ? cause->text : std::string();
}

}  // namespace cachewarm::plan
