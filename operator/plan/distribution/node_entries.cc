// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/node_entries.h"

#include <algorithm>

#include "lib/api/json/limits.h"
#include "operator/plan/decisions.h"
#include "operator/plan/nodes/offer.h"
#include "operator/plan/starts/late_compiles.h"

namespace cachewarm::plan {

namespace {

template <typename Entry>
std::vector<Entry> EntriesOfWarmup(const std::vector<Entry>& entries, const std::string& uid) {
  std::vector<Entry> out;
  for (const Entry& entry : entries) {
    if constexpr (requires { entry.warmup_uid; }) {
      if (entry.warmup_uid == uid) {
        out.push_back(entry);
      }
    } else if (entry.uid == uid) {
      out.push_back(entry);
    }
  }
  return out;
}

api::NodeCacheSpec PresentEntries(const NodeState& node, const std::string& uid) {
  return {.warmups = EntriesOfWarmup(node.cache->spec.warmups, uid),
          .captures = EntriesOfWarmup(node.cache->spec.captures, uid),
          .starts = EntriesOfWarmup(node.cache->spec.starts, uid)};
}

// Sets the bundles of a node's entry, and its fetch slot. A node that must fetch keeps its present
// bundles until it gets a slot, because removing one would make the agent build another copy of the
// cache directory.
void SetBundles(const Context& context, const Wanted& wanted, size_t index,
                api::WantedWarmup& entry) {
  const NodeState& node = context.nodes[index];
  const api::WantedWarmup* present = PresentEntry(context.uid(), node);
  if (present != nullptr) {
    entry.fetch_priority = present->fetch_priority;
    entry.fetch_granted_time = present->fetch_granted_time;
  }
  const int priority =
      wanted.slots.bound.contains(index) ? api::kFetchPriorityBound : api::kFetchPriorityNone;
  if (present != nullptr && priority > entry.fetch_priority &&
      IsFetching(*node.view, *present, context.in.now)) {
    entry.fetch_priority = priority;
  }
  const auto& here = BundlesOn(context, wanted, index);
  const bool needs_fetch = std::any_of(
      here.begin(), here.end(),
      [&](const api::WantedBundle& each) { return NeedsFetch(context, node, each.digest); });
  if (!needs_fetch) {
    entry.bundles = here;
  } else if (wanted.slots.granted.contains(index)) {
    entry.bundles = here;
    entry.fetch_priority = priority;
    entry.fetch_granted_time = context.stamp();
  } else if (present != nullptr) {
    entry.bundles = present->bundles;
  }
}

bool HasSuspended(const Bundles& bundles, const api::WantedWarmup& entry) {
  return std::any_of(entry.bundles.begin(), entry.bundles.end(),
                     [&](const auto& bundle) { return bundles.HasSuspendedFiles(bundle.digest); });
}

// Removes suspended bundles from a node's desired entry. If the present entry lists a suspended
// bundle (`is_present`), also requests a new cache directory: an agent whose entry has no bundle
// would keep the present directory, which has the suspended files.
void RemoveSuspended(const Bundles& bundles, bool is_present, api::WantedWarmup& entry) {
  entry.renew += is_present ? 1 : 0;
  std::erase_if(entry.bundles,
                [&](const auto& bundle) { return bundles.HasSuspendedFiles(bundle.digest); });
}

template <typename Entry>
std::vector<Entry> SortedEntries(const std::map<size_t, std::vector<Entry>>& all, size_t node) {
  const auto found = all.find(node);
  std::vector<Entry> out = found == all.end() ? std::vector<Entry>() : found->second;
  std::sort(out.begin(), out.end(),
            [](const Entry& a, const Entry& b) { return a.pod_uid < b.pod_uid; });
  return out;
}

// Truncates `own` so that these entries and those of other warmups in `all` together fit into the
// schema's limit. If a list of a NodeCache became too long, the API server would reject the whole
// apply.
template <typename Entry>
void LimitEntries(std::vector<Entry>& own, const std::vector<Entry>& all, size_t limit,
                  const std::string& uid) {
  const auto others = static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [&](const Entry& entry) { return entry.warmup_uid != uid; }));
  own.resize(std::min(own.size(), limit - std::min(limit, others)));
}

void LimitSharedLists(const Context& context, const NodeState& node, api::NodeCacheSpec& spec) {
  LimitEntries(spec.captures, node.cache->spec.captures, api::json::kCapturesMax, context.uid());
  LimitEntries(spec.starts, node.cache->spec.starts, api::json::kStartsMax, context.uid());
}

api::NodeCacheSpec Desired(const PlanContext& context, const Wanted& wanted, size_t index) {
  const NodeState& node = context.nodes[index];
  const api::NodeCacheSpec present = PresentEntries(node, context.uid());
  api::NodeCacheSpec out;
  out.starts = SortedEntries(wanted.windows, index);
  // While the warmup is paused, or acceptance forbids changes (`hard`), its present entries stay.
  if (context.paused() || (context.acceptance.hard && !present.warmups.empty())) {
    out.warmups = present.warmups;
    for (api::WantedWarmup& entry : out.warmups) {
      RemoveSuspended(wanted.bundles, HasSuspended(wanted.bundles, entry), entry);
    }
    out.captures = present.captures;
    // DecideHarvests() has ended the harvest, so nobody waits for its result.
    std::erase_if(out.captures, [](const auto& request) { return !request.generation.empty(); });
    if (!context.paused()) {
      out.captures = SortedEntries(context.builds.captures, index);
    }
    return out;
  }
  if (context.acceptance.hard || !(node.possible || node.hosts) || IsFull(context, node)) {
    return {};
  }
  api::WantedWarmup entry{.uid = context.uid(),
                          .ns = context.in.warmup.ns,
                          .name = context.in.warmup.name,
                          .run_as = wanted.run_as,
                          .caches = context.in.warmup.spec.caches,
                          .retain = context.in.warmup.spec.retain,
                          .harvest = context.in.warmup.spec.harvest};
  const api::WantedWarmup* before = present.warmups.empty() ? nullptr : &present.warmups.front();
  if (before != nullptr) {
    entry.renew = before->renew;
    entry.renewed_for = before->renewed_for;
    entry.late_counted = before->late_counted;
  } else {
    // From an earlier entry, the node may still have a cache directory with a suspended bundle.
    // With a different value of `renew`, the agent creates a new directory.
    entry.renew = static_cast<int>(wanted.bundles.suspended().size());
  }
  RenewTree(context, index, entry);
  if (node.target >= 0) {
    SetBundles(context, wanted, index, entry);
  } else if (!present.warmups.empty() && IsGpuUnknown(node.cache->status.node)) {
    // Keep the bundles, or the agent would replace an active cache directory by an empty one.
    entry.bundles = present.warmups.front().bundles;
    entry.fetch_priority = present.warmups.front().fetch_priority;
    entry.fetch_granted_time = present.warmups.front().fetch_granted_time;
  }
  RemoveSuspended(wanted.bundles, before != nullptr && HasSuspended(wanted.bundles, *before),
                  entry);
  out.warmups.push_back(std::move(entry));
  out.captures = SortedEntries(context.builds.captures, index);
  return out;
}

// Names the report of late compiles that is counted. The status is written before the NodeCaches,
// so an agent drops a report only after its entries are in the totals.
void AcknowledgeReport(const api::Starts& starts, const NodeState& node, api::NodeCacheSpec& spec) {
  const int64_t counted = CountedReport(starts, node.view->node->meta.name);
  for (api::WantedWarmup& entry : spec.warmups) {
    entry.late_counted = std::max(entry.late_counted, counted);
  }
}

bool Differs(const api::NodeCacheSpec& a, const api::NodeCacheSpec& b) {
  return !(a.warmups == b.warmups && a.captures == b.captures && a.starts == b.starts);
}

}  // namespace

const std::vector<api::WantedBundle>& BundlesOn(const Context& context, const Wanted& wanted,
                                                size_t node) {
  const auto own = wanted.by_node.find(node);
  return own != wanted.by_node.end()
             ? own->second
             : wanted.by_target[static_cast<size_t>(context.nodes[node].target)];
}

bool Contains(const std::vector<api::WantedBundle>& bundles, const Digest& digest) {
  return std::any_of(bundles.begin(), bundles.end(),
                     [&](const api::WantedBundle& each) { return each.digest == digest; });
}

bool IsFull(const std::string& uid, const NodeState& node) {
  return node.view->warmups_listed >= api::json::kNodeWarmupsMax &&
         PresentEntry(uid, node) == nullptr;
}

const api::WantedWarmup* PresentEntry(const std::string& uid, const NodeState& node) {
  if (node.cache != nullptr) {
    for (const api::WantedWarmup& entry : node.cache->spec.warmups) {
      if (entry.uid == uid) {
        return &entry;
      }
    }
  }
  return nullptr;
}

std::optional<WallTime> ActiveSince(const Context& context, const NodeState& node,
                                    const api::BundleStatus& bundle) {
  if (!IsServed(node, bundle)) {
    return std::nullopt;
  }
  const api::NodeBundle& serving = *ServingBundle(node, bundle);
  const api::WantedWarmup* entry = PresentEntry(context.uid(), node);
  if (entry == nullptr) {
    return bundle.published_time;
  }
  if (serving.digest != bundle.digest && entry->fetch_granted_time >= bundle.harvested_time) {
    // The fetch slot is that of the larger bundle. The node had this one before the harvest.
    return std::max(bundle.published_time, bundle.harvested_time);
  }
  const auto fetch =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(serving.fetch_seconds));
  return std::max(bundle.published_time, entry->fetch_granted_time + fetch);
}

bool NeedsFetch(const Context& context, const NodeState& node, const Digest& digest) {
  const api::WantedWarmup* present = PresentEntry(context.uid(), node);
  const bool is_requested = present != nullptr && Contains(present->bundles, digest);
  return !is_requested && !IsActive(node, digest);
}

std::optional<api::NodeCacheSpec> ChangedEntries(const PlanContext& context, const Wanted& wanted,
                                                 size_t node) {
  const NodeState& state = context.nodes[node];
  const api::NodeCacheSpec present = PresentEntries(state, context.uid());
  api::NodeCacheSpec desired =
      context.deleting() ? api::NodeCacheSpec{} : Desired(context, wanted, node);
  AcknowledgeReport(wanted.starts, state, desired);
  LimitSharedLists(context, state, desired);
  return Differs(desired, present) ? std::optional(std::move(desired)) : std::nullopt;
}

}  // namespace cachewarm::plan
