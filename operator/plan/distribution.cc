// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kBundlesPerNodeMax = 16;
constexpr size_t kBundlesMax = 64;
constexpr size_t kBuildersMax = 64;
constexpr size_t kRunAsMax = 8;
constexpr size_t kCapturesMax = 16;
constexpr size_t kStartsMax = 64;

// ---- what a target should have ------------------------------------------------------------------

// The bundles of one target: that of each live key, and the newest other one, which is the seed of
// a key without a bundle and what a roll back finds. First the current key's.
std::vector<api::WantedBundle> BundlesOfTarget(const Round& round, size_t target) {
  std::vector<api::WantedBundle> out;
  std::set<Digest> digests;
  const auto add = [&](const api::BundleStatus& bundle) {
    if (out.size() < kBundlesPerNodeMax && digests.insert(bundle.digest).second) {
      out.push_back({.key = bundle.key, .digest = bundle.digest, .bytes = bundle.bytes});
    }
  };
  for (const bool current : {true, false}) {
    for (const LiveKey& key : round.keys) {
      const api::BundleStatus* bundle =
          key.target == target && key.current == current ? BundleFor(round, key) : nullptr;
      if (bundle != nullptr) {
        add(*bundle);
      }
    }
  }
  auto others = BundlesOf(round);
  std::erase_if(others, [&](const fingerprint::BundleFacts& each) {
    return std::any_of(digests.begin(), digests.end(),
                       [&](const Digest& digest) { return digest.ToString() == each.digest; });
  });
  const api::KeyFactors wanted{.gpu_type = round.targets[target].gpu_type,
                               .cpu_class = round.targets[target].cpu_class,
                               .image = round.pod_template.factors.image,
                               .devices = round.pod_template.factors.devices,
                               .container = round.pod_template.factors.container};
  if (const auto* seed = fingerprint::ChooseSeed(others, wanted)) {
    for (const api::BundleStatus& bundle : round.out.status.bundles) {
      if (bundle.digest.ToString() == seed->digest) {
        add(bundle);
        break;
      }
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return out;
}

// The template's run-as first, then those of pods that still run as another.
std::vector<std::string> RunAsNames(const Round& round) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && out.size() < kRunAsMax &&
        std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
  };
  add(round.pod_template.run_as);
  std::set<std::string> live;
  for (const PodView& pod : round.pods) {
    if (pod.ours && !pod.finished) {
      live.insert(pod.run_as);
    }
  }
  std::for_each(live.begin(), live.end(), add);
  return out;
}

// ---- the entries of one node --------------------------------------------------------------------

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

struct Wanted {
  std::vector<std::vector<api::WantedBundle>> by_target;
  std::vector<std::string> run_as;
};

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
  LeaveRoom(spec.captures, node.cache->spec.captures, kCapturesMax, round.uid());
  LeaveRoom(spec.starts, node.cache->spec.starts, kStartsMax, round.uid());
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
  if (round.acceptance.hard || !(node.possible || node.hosts)) {
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
    entry.bundles = wanted.by_target[static_cast<size_t>(node.target)];
  }
  out.warmups.push_back(std::move(entry));
  out.captures = SortedEntries(round.captures, index);
  return out;
}

bool Differs(const api::NodeCacheSpec& a, const api::NodeCacheSpec& b) {
  return !(a.warmups == b.warmups && a.captures == b.captures && a.starts == b.starts);
}

bool IsEmpty(const api::NodeCacheSpec& spec) {
  return spec.warmups.empty() && spec.captures.empty() && spec.starts.empty();
}

// ---- counts -------------------------------------------------------------------------------------

// Every digest that counts as spread to a node is found in one of its fitting targets' lists.
void CountNodes(const Round& round, const Wanted& wanted, api::BundleStatus& bundle) {
  bundle.nodes_desired = 0;
  bundle.nodes_ready = 0;
  bundle.nodes_failed = 0;
  bundle.message.clear();
  for (const NodeState& node : round.nodes) {
    if (node.target < 0 || !node.ready) {
      continue;
    }
    const auto& here = wanted.by_target[static_cast<size_t>(node.target)];
    if (std::none_of(here.begin(), here.end(),
                     [&](const auto& each) { return each.digest == bundle.digest; })) {
      continue;
    }
    ++bundle.nodes_desired;
    const api::NodeBundle* reported = ReportedBundle(node, bundle.digest);
    if (reported == nullptr) {
      continue;
    }
    bundle.nodes_ready += reported->state == api::BundleState::kActive ? 1 : 0;
    if (reported->state == api::BundleState::kFailed) {
      ++bundle.nodes_failed;
      if (bundle.message.empty()) {
        bundle.message = CutMessage(fmt::format("node {}: {}: {}", node.view->node->meta.name,
                                                reported->reason, reported->message));
      }
    }
  }
}

// Beyond the limits of the schema the oldest that no node wants go first.
void Prune(Round& round) {
  auto& bundles = round.out.status.bundles;
  while (bundles.size() > kBundlesMax) {
    const auto oldest =
        std::min_element(bundles.begin(), bundles.end(), [](const auto& a, const auto& b) {
          return std::pair(a.nodes_desired > 0, a.published_time) <
                 std::pair(b.nodes_desired > 0, b.published_time);
        });
    bundles.erase(oldest);
    round.serving.clear();
  }
  auto& builders = round.out.status.builders;
  while (builders.size() > kBuildersMax) {
    builders.erase(
        std::min_element(builders.begin(), builders.end(), [](const auto& a, const auto& b) {
          return std::pair(IsRunning(a), a.elected_time) < std::pair(IsRunning(b), b.elected_time);
        }));
  }
  std::sort(bundles.begin(), bundles.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::sort(builders.begin(), builders.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  round.serving.clear();
}

}  // namespace

void DecideDistribution(Round& round) {
  Wanted wanted{.run_as = RunAsNames(round)};
  for (size_t target = 0; target < round.targets.size(); ++target) {
    wanted.by_target.push_back(BundlesOfTarget(round, target));
  }
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.cache == nullptr) {
      continue;  // the operator makes it; an apply of ours would make one without its owner
    }
    const api::NodeCacheSpec present = Present(node, round.uid());
    api::NodeCacheSpec desired =
        round.deleting() ? api::NodeCacheSpec{} : Desired(round, wanted, i);
    LeaveRoomForOthers(round, node, desired);
    if (IsEmpty(desired) && IsEmpty(present)) {
      continue;
    }
    if (Differs(desired, present)) {
      round.out.nodes.push_back({.node = node.view->node->meta.name,
                                 .node_uid = node.view->node->meta.uid,
                                 .spec = std::move(desired)});
    }
  }
  if (round.deleting()) {
    return;
  }
  for (api::BundleStatus& bundle : round.out.status.bundles) {
    CountNodes(round, wanted, bundle);
  }
  Prune(round);
}

}  // namespace cachewarm::plan
