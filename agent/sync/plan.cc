// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "agent/sync/tree_names.h"
#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

const Link* FindLink(const Inventory& inventory, const Mount& mount) {
  const auto found = inventory.links.find(mount);
  return found == inventory.links.end() ? nullptr : &found->second;
}

bool IsLinked(const Link* link) {
  return link != nullptr && !link->generation.empty();
}

// Collects the steps in one list per kind, because the plan orders them by kind.
class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input) {}

  Plan Run() {
    plan_.shortage = Lacking(input_.disk, {});
    RepairLinks();
    for (const api::WantedWarmup* wanted : ByNeed()) {
      for (const std::string& run_as : wanted->run_as) {
        PlanMount(*wanted, Mount{wanted->ns, wanted->name, wanted->uid, run_as});
      }
    }
    for (const std::string& name : input_.inventory.staging) {
      if (!input_.history.fetching.contains(name)) {
        discard_.emplace_back(Discard{name});
      }
    }
    if (input_.is_known) {
      std::set_difference(input_.history.fetching.begin(), input_.history.fetching.end(),
                          needed_.begin(), needed_.end(),
                          std::inserter(plan_.unneeded, plan_.unneeded.end()));
    }
    for (auto* steps : {&prepare_, &activate_, &discard_, &fetch_}) {
      plan_.steps.insert(plan_.steps.end(), steps->begin(), steps->end());
    }
    return std::move(plan_);
  }

 private:
  // Orders the warmups by fetch priority, so that bundles that pods wait for get worker threads and
  // disk space first.
  std::vector<const api::WantedWarmup*> ByNeed() const {
    std::vector<const api::WantedWarmup*> out;
    for (const api::WantedWarmup& wanted : input_.desired.warmups) {
      out.push_back(&wanted);
    }
    std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
      return a->fetch_priority > b->fetch_priority;
    });
    return out;
  }

  // Repairs the links of all mounts, including mounts that the spec no longer lists: a dangling
  // link prevents containers from being created, and a link to a damaged tree may crash them.
  void RepairLinks() {
    for (const auto& [mount, link] : input_.inventory.links) {
      if (link.state == LinkState::kBroken) {
        prepare_.emplace_back(Prepare{mount, link.renew});
      } else if (IsDamaged(link)) {
        prepare_.emplace_back(Renew{mount, link.renew});
      } else if (link.state == LinkState::kDirectory && IsUnlisted(mount)) {
        // A late pod of a deleted warmup made kubelet create it. As a tree it can be evicted.
        prepare_.emplace_back(Prepare{mount, link.renew});
      }
    }
  }

  bool IsUnlisted(const Mount& mount) const {
    const auto& listed = input_.desired.warmups;
    return input_.is_known && std::none_of(listed.begin(), listed.end(),
                                           [&](const auto& each) { return each.uid == mount.uid; });
  }

  bool IsDamaged(const Link& link) const {
    return !link.generation.empty() && input_.inventory.damaged.contains(link.generation);
  }

  void PlanMount(const api::WantedWarmup& wanted, const Mount& mount) {
    if (const absl::Status valid = CheckMount(mount); !valid.ok()) {
      plan_.invalid[wanted.uid] = std::string(valid.message());
      return;
    }
    const Link* link = FindLink(input_.inventory, mount);
    if (link == nullptr || link->state == LinkState::kDirectory ||
        link->state == LinkState::kUnusable) {
      prepare_.emplace_back(Prepare{mount, wanted.renew});
    }
    const auto bundles = EligibleBundles(wanted, input_.history, input_.now);
    ScheduleRetry(wanted);
    const auto id = SelectTree(input_.inventory, mount, DigestsOf(bundles), wanted.renew);
    const bool is_stale = IsLinked(link) && link->renew != wanted.renew && !IsDamaged(*link);
    if (is_stale &&
        (bundles.empty() || !id.has_value() || !input_.inventory.generations.contains(*id))) {
      prepare_.emplace_back(Renew{mount, wanted.renew});
    }
    if (!bundles.empty() && id.has_value()) {
      PlanActivation(wanted, mount, *id, bundles);
    } else if (!bundles.empty()) {
      GiveUp(wanted, mount, bundles);
    }
  }

  void PlanActivation(const api::WantedWarmup& wanted, const Mount& mount, const std::string& id,
                      const std::vector<api::WantedBundle>& bundles) {
    needed_.insert(id);
    const Link* link = FindLink(input_.inventory, mount);
    if (IsLinked(link) && link->generation == id) {
      return;
    }
    if (input_.inventory.generations.contains(id)) {
      activate_.emplace_back(Activate{mount, id, wanted.renew});
      return;
    }
    const auto failure = input_.history.generations.find(id);
    if (failure != input_.history.generations.end() && failure->second.not_before > input_.now) {
      AddShortage(failure->second);
      plan_.next = std::min(plan_.next, failure->second.not_before);
      return;
    }
    if (!input_.history.fetching.contains(id) && HasCapacity(wanted, bundles)) {
      // A tree that replaces a damaged one reuses no files: the damaged file may be hard-linked
      // into other trees.
      const bool is_first = id == GenerationId(mount, DigestsOf(bundles), wanted.renew);
      fetch_.emplace_back(Fetch{mount, id, bundles,
                                is_first ? Sources(wanted, mount) : std::vector<std::string>()});
    }
  }

  void GiveUp(const api::WantedWarmup& wanted, const Mount& mount,
              const std::vector<api::WantedBundle>& bundles) {
    const std::string last = GenerationId(mount, DigestsOf(bundles), wanted.renew, kTreesMax - 1);
    const FailureState given_up{
        .count = kTreesMax,
        .not_before = MonoTime::max(),
        .reason = std::string(api::reason::kTreeDamaged),
        .message = fmt::format(
            "{} consecutive trees of this bundle were damaged on this node; giving up. Find the "
            "process that writes into them, or replace the disk. Last damage: {}",
            kTreesMax, DescribeDamage(input_.inventory.damaged.at(last)))};
    for (const api::WantedBundle& bundle : bundles) {
      plan_.refused[BundleName{wanted.uid, bundle.digest}] = given_up;
    }
  }

  // Returns the trees from which files may be reused. The present tree of the mount comes first,
  // because its files have the right owner.
  std::vector<std::string> Sources(const api::WantedWarmup& wanted, const Mount& mount) const {
    std::vector<std::string> sources;
    for (const auto& [other, link] : input_.inventory.links) {
      const bool is_source = other.uid == wanted.uid && link.state == LinkState::kActive &&
                             link.renew == wanted.renew && !IsColdId(link.generation) &&
                             !input_.inventory.damaged.contains(link.generation);
      if (is_source) {
        sources.insert(other == mount ? sources.begin() : sources.end(), link.generation);
      }
    }
    return sources;
  }

  // Adds what a refused fetch lacks beyond the limits, so that one eviction makes room for all
  // refused fetches. Mounts of one warmup share the failures of its bundles.
  void AddShortage(const FailureState& failure) {
    if (counted_.insert(&failure).second) {
      const DiskAmount over = Lacking(input_.disk, {});
      plan_.shortage = plan_.shortage + Max({}, {.bytes = failure.lacking.bytes - over.bytes,
                                                 .inodes = failure.lacking.inodes - over.inodes});
    }
  }

  // Returns true if the disk has space for the packed size of the bundles. The unpacked size is
  // known only from the manifests, so the fetch checks it.
  bool HasCapacity(const api::WantedWarmup& wanted, const std::vector<api::WantedBundle>& bundles) {
    DiskAmount need{.bytes = planned_bytes_};
    for (const api::WantedBundle& bundle : bundles) {
      need.bytes += bundle.bytes;
    }
    const std::optional<SpaceRefusal> refusal = CheckSpace(input_.disk, need);
    if (!refusal.has_value()) {
      planned_bytes_ = need.bytes;
      return true;
    }
    plan_.shortage = Max(plan_.shortage, Lacking(input_.disk, need));
    for (const api::WantedBundle& bundle : bundles) {
      plan_.refused[BundleName{wanted.uid, bundle.digest}] = {
          .reason = std::string(refusal->reason), .message = refusal->message};
    }
    return false;
  }

  void ScheduleRetry(const api::WantedWarmup& wanted) {
    for (const api::WantedBundle& bundle : wanted.bundles) {
      const auto found = input_.history.bundles.find(BundleName{wanted.uid, bundle.digest});
      if (found != input_.history.bundles.end() && found->second.not_before > input_.now) {
        AddShortage(found->second);
        plan_.next = std::min(plan_.next, found->second.not_before);
      }
    }
  }

  const PlanInput& input_;
  std::set<const FailureState*> counted_;  // by AddShortage()
  Plan plan_;
  std::set<std::string> needed_;  // the trees that the mounts should have
  int64_t planned_bytes_ = 0;
  std::vector<Step> prepare_;
  std::vector<Step> activate_;
  std::vector<Step> discard_;
  std::vector<Step> fetch_;
};

}  // namespace

Plan MakePlan(const PlanInput& input) {
  return Planner(input).Run();
}

std::optional<std::string> SelectTree(const Inventory& inventory, const Mount& mount,
                                      const std::vector<Digest>& digests, int renew) {
  std::optional<std::string> next;
  for (int attempt = 0; attempt < kTreesMax; ++attempt) {
    std::string id = GenerationId(mount, digests, renew, attempt);
    if (inventory.damaged.contains(id)) {
      continue;
    }
    if (inventory.generations.contains(id)) {
      return id;
    }
    if (!next.has_value()) {
      next = std::move(id);
    }
  }
  return next;
}

std::vector<api::WantedBundle> EligibleBundles(const api::WantedWarmup& wanted,
                                               const History& history, MonoTime now) {
  std::vector<api::WantedBundle> eligible;
  for (const api::WantedBundle& bundle : wanted.bundles) {
    const auto found = history.bundles.find(BundleName{wanted.uid, bundle.digest});
    const bool waits = found != history.bundles.end() && found->second.not_before > now;
    const bool repeated = std::any_of(eligible.begin(), eligible.end(), [&](const auto& earlier) {
      return earlier.digest == bundle.digest;
    });
    if (!bundle.digest.empty() && !waits && !repeated) {
      eligible.push_back(bundle);
    }
  }
  return eligible;
}

std::vector<Digest> DigestsOf(const std::vector<api::WantedBundle>& bundles) {
  std::vector<Digest> digests;
  digests.reserve(bundles.size());
  for (const api::WantedBundle& bundle : bundles) {
    digests.push_back(bundle.digest);
  }
  return digests;
}

}  // namespace cachewarm::agent
