// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/late_compiles.h"

#include <algorithm>

#include "lib/api/json/limits.h"
#include "operator/plan/distribution/node_entries.h"
#include "operator/plan/starts/totals.h"

namespace cachewarm::plan {

namespace {

// The times of a start are whole seconds, rounded down, and kubelet sets them with a delay.
constexpr Duration kTolerance = std::chrono::seconds(2);

// True if the agent of the node may not know that this pod was starting: it lacks the window of the
// start, or it has lost file events, or the container was restarted.
bool IsUnobserved(const NodeState& node, const PodView& pod) {
  if (pod.counted == api::StartResult::kUnknown || pod.container->restarts > 0) {
    return true;
  }
  const auto& windows = node.cache->spec.starts;
  return !pod.counted && std::none_of(windows.begin(), windows.end(), [&](const auto& window) {
    return window.pod_uid == pod.pod->meta.uid;
  });
}

// True if an unobserved start of a pod may have compiled some of the entries.
bool MayBeOfStart(const PlanContext& context, size_t node, const api::LateCompiles& late) {
  return std::any_of(context.pods.begin(), context.pods.end(), [&](const PodView& pod) {
    if (!pod.injected || pod.node != static_cast<int>(node) || pod.container == nullptr ||
        !IsUnobserved(context.nodes[node], pod)) {
      return false;
    }
    const WallTime ready = ReadyAt(context, pod);
    return pod.container->started_time - kTolerance <= late.last_time &&
           (ready == WallTime{} || late.first_time <= ready + kTolerance);
  });
}

const NodeState* FindNode(const PlanContext& context, std::string_view name) {
  const auto found =
      std::find_if(context.nodes.begin(), context.nodes.end(),
                   [&](const NodeState& node) { return node.view->node->meta.name == name; });
  return found == context.nodes.end() ? nullptr : &*found;
}

// True if the agent of the node may still report this number.
bool MayShow(const PlanContext& context, const api::LateReport& counted) {
  const NodeState* node = FindNode(context, counted.node);
  // A NodeCache that cannot be read proves nothing.
  return node != nullptr &&
         (node->cache == nullptr ||
          (node->reported != nullptr && node->reported->late_compiles.report == counted.report));
}

}  // namespace

int64_t CountedReport(const api::Starts& starts, std::string_view node) {
  const auto& reports = starts.late_reports;
  const auto found = std::find_if(reports.begin(), reports.end(),
                                  [&](const auto& each) { return each.node == node; });
  return found == reports.end() ? 0 : found->report;
}

void CountLateCompiles(const PlanContext& context, api::Starts& starts) {
  std::vector<api::LateReport>& reports = starts.late_reports;
  std::erase_if(reports, [&](const auto& each) { return !MayShow(context, each); });
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.reported == nullptr || node.reported->late_compiles.report == 0) {
      continue;
    }
    const api::LateCompiles& late = node.reported->late_compiles;
    const std::string& name = node.view->node->meta.name;
    const api::WantedWarmup* entry = PresentEntry(context.uid(), node);
    if (CountedReport(starts, name) != 0 ||
        (entry != nullptr && entry->late_counted >= late.report) ||
        reports.size() >= api::json::kLateReportsMax) {
      continue;
    }
    const auto at = std::lower_bound(
        reports.begin(), reports.end(), name,
        [](const auto& each, const std::string& wanted) { return each.node < wanted; });
    reports.insert(at, {.node = name, .report = late.report});
    if (!MayBeOfStart(context, i, late)) {
      TotalsOf(starts, node.cache->status.node.gpu_type).late_compiles += late.entries;
    }
  }
}

}  // namespace cachewarm::plan
