// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/fetching/entries.h"

#include <algorithm>

#include "lib/api/json/limits.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace {

template <typename Entry>
std::vector<Entry> OursOf(const std::vector<Entry>& entries, const std::string& uid) {
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

api::NodeCacheSpec Present(const NodeState& node, const std::string& uid) {
  return {.warmups = OursOf(node.cache->spec.warmups, uid),
          .captures = OursOf(node.cache->spec.captures, uid),
          .starts = OursOf(node.cache->spec.starts, uid)};
}

// Until its turn comes, a node keeps what it has: to take one bundle away makes another tree, too.
void SetBundles(const Round& round, const Wanted& wanted, size_t index, api::WantedWarmup& entry) {
  const NodeState& node = round.nodes[index];
  const api::WantedWarmup* present = PresentEntry(round, node);
  if (present != nullptr) {
    entry.need = present->need;
    entry.fetch_since = present->fetch_since;
  }
  const int need = wanted.turns.needs.empty() ? api::kNeedNone : wanted.turns.needs[index];
  if (present != nullptr && need > entry.need && IsFetching(*node.view, *present, round.in.now)) {
    entry.need = need;
  }
  const auto& here = wanted.by_target[static_cast<size_t>(node.target)];
  const bool asks = std::any_of(here.begin(), here.end(), [&](const api::WantedBundle& each) {
    return Asks(round, node, each.digest);
  });
  if (!asks) {
    entry.bundles = here;
  } else if (wanted.turns.granted.contains(index)) {
    entry.bundles = here;
    entry.need = need;
    entry.fetch_since = round.stamp();
  } else if (present != nullptr) {
    entry.bundles = present->bundles;
  }
}

template <typename Entry>
std::vector<Entry> SortedEntries(const std::map<size_t, std::vector<Entry>>& all, size_t node) {
  const auto found = all.find(node);
  std::vector<Entry> out = found == all.end() ? std::vector<Entry>() : found->second;
  std::sort(out.begin(), out.end(),
            [](const Entry& a, const Entry& b) { return a.pod_uid < b.pod_uid; });
  return out;
}

// All warmups share the lists of one node, and an apply beyond the schema's limit is refused whole.
template <typename Entry>
void LeaveRoom(std::vector<Entry>& ours, const std::vector<Entry>& all, size_t limit,
               const std::string& uid) {
  const auto others = static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [&](const Entry& entry) { return entry.warmup_uid != uid; }));
  ours.resize(std::min(ours.size(), limit - std::min(limit, others)));
}

void LeaveRoomForOthers(const Round& round, const NodeState& node, api::NodeCacheSpec& spec) {
  LeaveRoom(spec.captures, node.cache->spec.captures, api::json::kCapturesMax, round.uid());
  LeaveRoom(spec.starts, node.cache->spec.starts, api::json::kStartsMax, round.uid());
}

api::NodeCacheSpec Desired(const Round& round, const Wanted& wanted, size_t index) {
  const NodeState& node = round.nodes[index];
  const api::NodeCacheSpec present = Present(node, round.uid());
  api::NodeCacheSpec out;
  out.starts = SortedEntries(round.windows, index);
  // Frozen: what is there stays as it is.
  if (round.paused() || (round.acceptance.hard && !present.warmups.empty())) {
    out.warmups = present.warmups;
    out.captures = present.captures;
    if (!round.paused()) {
      out.captures = SortedEntries(round.captures, index);
    }
    return out;
  }
  if (round.acceptance.hard || !(node.possible || node.hosts) || IsFull(round, node)) {
    return {};
  }
  api::WantedWarmup entry{.uid = round.uid(),
                          .ns = round.in.warmup.ns,
                          .name = round.in.warmup.name,
                          .run_as = wanted.run_as,
                          .caches = round.in.warmup.spec.caches};
  if (!present.warmups.empty()) {
    entry.renew = present.warmups.front().renew;
    entry.renewed_for = present.warmups.front().renewed_for;
  }
  RenewTree(round, index, entry);
  if (node.target >= 0) {
    SetBundles(round, wanted, index, entry);
  }
  out.warmups.push_back(std::move(entry));
  out.captures = SortedEntries(round.captures, index);
  return out;
}

bool Differs(const api::NodeCacheSpec& a, const api::NodeCacheSpec& b) {
  return !(a.warmups == b.warmups && a.captures == b.captures && a.starts == b.starts);
}

}  // namespace

bool Names(const std::vector<api::WantedBundle>& bundles, const Digest& digest) {
  return std::any_of(bundles.begin(), bundles.end(),
                     [&](const api::WantedBundle& each) { return each.digest == digest; });
}

bool IsFull(const Round& round, const NodeState& node) {
  return node.view->warmups_listed >= api::json::kNodeWarmupsMax &&
         PresentEntry(round, node) == nullptr;
}

const api::WantedWarmup* PresentEntry(const Round& round, const NodeState& node) {
  if (node.cache != nullptr) {
    for (const api::WantedWarmup& entry : node.cache->spec.warmups) {
      if (entry.uid == round.uid()) {
        return &entry;
      }
    }
  }
  return nullptr;
}

bool Asks(const Round& round, const NodeState& node, const Digest& digest) {
  const api::WantedWarmup* present = PresentEntry(round, node);
  const bool told = present != nullptr && Names(present->bundles, digest);
  return !told && !IsActive(node, digest);
}

std::optional<api::NodeCacheSpec> ChangedEntries(const Round& round, const Wanted& wanted,
                                                 size_t node) {
  const NodeState& state = round.nodes[node];
  const api::NodeCacheSpec present = Present(state, round.uid());
  api::NodeCacheSpec desired =
      round.deleting() ? api::NodeCacheSpec{} : Desired(round, wanted, node);
  LeaveRoomForOthers(round, state, desired);
  return Differs(desired, present) ? std::optional(std::move(desired)) : std::nullopt;
}

}  // namespace cachewarm::plan
