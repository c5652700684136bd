// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/start_cause.h"

#include <fmt/format.h>

#include <vector>

#include "lib/api/reasons.h"
#include "operator/factors/cause.h"

namespace cachewarm::plan {

namespace {

// Returns what the engine did with the cache, as the end of a clause; "" for a start that had no
// cache to use or used all of it.
std::string_view DescribeMiss(api::StartResult result) {
  switch (result) {
    case api::StartResult::kMiss:
      return "compiled everything, although the bundle was active on the node";
    case api::StartResult::kPartial:
      return "used a part of the bundle and compiled the rest";
    case api::StartResult::kInert:
      return "did not read the mounted cache";
    case api::StartResult::kHollow:
      return "found the entries of the bundle but compiled the native code again";
    default:
      return "";
  }
}

}  // namespace

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
  const auto cause =
      factors::FindCause({.result = start.sample.result,
                          .node = start.sample.node,
                          .factors = own,
                          .bundle = serves ? serving : factors::ClosestBundle(earlier, own),
                          .serves = serves,
                          .was_active = start.had_bundle});
  return cause.has_value() ? cause->text : std::string();
}

void ReportMiss(const CountedStart& start, Effects& effects) {
  const std::string_view what = DescribeMiss(start.sample.result);
  if (what.empty() || start.sample.cause.empty()) {
    return;
  }
  EventRequest event = MakePodEvent(
      *start.pod.pod, api::reason::kCacheMissed,
      TruncateMessage(fmt::format("Pod {}/{} {}: {}", start.pod.pod->meta.ns,
                                  start.pod.pod->meta.name, what, start.sample.cause)));
  event.action = "Start";
  effects.events.push_back(std::move(event));
}

}  // namespace cachewarm::plan
