// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/eviction.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "agent/sync/plan.h"
#include "agent/sync/tree_names.h"
#include "lib/api/json/limits.h"

namespace cachewarm::agent {
namespace {

using Owner = std::pair<std::string, std::string>;  // uid of the warmup, run-as

// Rounds up, because the API writes whole seconds and a later time only delays the removal.
WallTime CeilSeconds(WallTime time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
}

class Evictor {
 public:
  explicit Evictor(const EvictionInput& input) : input_(input) {
    for (const api::WantedWarmup& wanted : input.desired.warmups) {
      listed_[wanted.uid] = &wanted;
      for (const std::string& run_as : wanted.run_as) {
        Keep(wanted, Mount{wanted.ns, wanted.name, wanted.uid, run_as});
      }
    }
    for (const auto& [mount, link] : input.inventory.links) {
      if (!link.generation.empty()) {
        linked_[link.generation] = mount;
      }
      has_link_.insert({mount.uid, mount.run_as});
    }
  }

  EvictionPlan Run() {
    std::map<Owner, std::vector<EvictionOffer>> with_bundles;
    for (const auto& [name, tree] : input_.inventory.retired) {
      Offer(name, tree, EvictionCause::kUnusable);
    }
    for (const auto& [name, tree] : input_.inventory.generations) {
      if (const auto link = linked_.find(name); link != linked_.end()) {
        OfferLinked(name, link->second);
      } else if (wanted_.contains(name)) {
        continue;
      } else if (input_.inventory.damaged.contains(name)) {
        Offer(name, tree, EvictionCause::kUnusable);
      } else if (IsColdId(name)) {
        Offer(name, tree, EvictionCause::kCold);
      } else if (IsOrphan(tree)) {
        Offer(name, tree, EvictionCause::kWarmupGone);
      } else if (!input_.in_use.contains(name)) {
        with_bundles[{tree.warmup_uid, tree.run_as}].push_back(
            MakeOffer(name, tree, EvictionCause::kSuperseded));
      }
    }
    for (auto& [owner, trees] : with_bundles) {
      Retain(owner.first, trees);
    }
    RelievePressure();
    Sort(offers_);
    LimitOffers();
    return {.offers = std::move(offers_), .unlink = std::move(unlink_)};
  }

 private:
  // Keeps the tree that the next plan activates at `mount`.
  void Keep(const api::WantedWarmup& wanted, const Mount& mount) {
    if (const auto id =
            SelectTree(input_.inventory, mount, DigestsOf(wanted.bundles), wanted.renew)) {
      wanted_.insert(*id);
    }
  }

  bool IsOrphan(const Generation& tree) const {
    return !listed_.contains(tree.warmup_uid) &&
           !has_link_.contains({tree.warmup_uid, tree.run_as});
  }

  EvictionOffer MakeOffer(const std::string& name, const Generation& tree,
                          EvictionCause cause) const {
    WallTime unlinked = tree.unlinked_time;
    if (const auto seen = input_.first_seen.find(name);
        unlinked == WallTime{} && seen != input_.first_seen.end()) {
      unlinked = seen->second;
    }
    EvictionOffer offer{.tree = {.generation = name,
                                 .warmup_uid = tree.warmup_uid,
                                 .unlinked_time = CeilSeconds(unlinked)},
                        .cause = cause};
    if (const auto usage = input_.usage.find(name); usage != input_.usage.end()) {
      offer.usage = usage->second;
    }
    return offer;
  }

  void Offer(const std::string& name, const Generation& tree, EvictionCause cause) {
    if (!input_.in_use.contains(name)) {
      EvictionOffer offer = MakeOffer(name, tree, cause);
      // A zero time means that a link leads to the tree. A tree whose time is unknown is offered
      // once this process has seen it.
      if (offer.tree.unlinked_time != WallTime{}) {
        unlinked_ = unlinked_ + offer.usage;
        offers_.push_back(std::move(offer));
      }
    }
  }

  void OfferLinked(const std::string& name, const Mount& mount) {
    if (listed_.contains(mount.uid) || input_.in_use.contains(name)) {
      return;
    }
    EvictionOffer offer{.tree = {.generation = name, .warmup_uid = mount.uid},
                        .cause = EvictionCause::kWarmupGone,
                        .link = mount};
    if (const auto usage = input_.usage.find(name); usage != input_.usage.end()) {
      offer.usage = usage->second;
    }
    offers_.push_back(std::move(offer));
  }

  void Retain(const std::string& uid, std::vector<EvictionOffer>& trees) {
    std::sort(trees.begin(), trees.end(), [](const EvictionOffer& a, const EvictionOffer& b) {
      return std::tie(b.tree.unlinked_time, b.tree.generation) <
             std::tie(a.tree.unlinked_time, a.tree.generation);
    });
    const auto warmup = listed_.find(uid);
    const int retain = warmup == listed_.end() ? api::kRetainDefault : warmup->second->retain;
    for (size_t i = 0; i < trees.size(); ++i) {
      if (trees[i].tree.unlinked_time == WallTime{}) {
        continue;
      }
      if (i < static_cast<size_t>(retain)) {
        retained_.push_back(std::move(trees[i]));
      } else {
        unlinked_ = unlinked_ + trees[i].usage;
        offers_.push_back(std::move(trees[i]));
      }
    }
  }

  bool IsRelieved() const {
    return unlinked_.bytes >= input_.shortage.bytes && unlinked_.inodes >= input_.shortage.inodes;
  }

  // Offers all retained trees: pods may have some of them mounted, so the agent does not know which
  // ones can be removed. Then switches links of mounts that the node no longer lists. The space of
  // offers with a link does not count: the operator does not confirm them while the warmup exists.
  void RelievePressure() {
    if (IsNone(input_.shortage)) {
      return;
    }
    for (EvictionOffer& offer : retained_) {
      offer.cause = EvictionCause::kDiskPressure;
      unlinked_ = unlinked_ + offer.usage;
      offers_.push_back(std::move(offer));
    }
    for (const auto& [name, mount] : linked_) {
      if (IsRelieved()) {
        return;
      }
      if (!listed_.contains(mount.uid) && !IsColdId(name) && !input_.in_use.contains(name)) {
        unlink_.push_back(mount);
        if (const auto usage = input_.usage.find(name); usage != input_.usage.end()) {
          unlinked_ = unlinked_ + usage->second;
        }
      }
    }
  }

  // Limits offers with a link, which may never be confirmed, so that others are not crowded out.
  void LimitOffers() {
    constexpr size_t kLinkedMax = 96;
    size_t linked = 0;
    std::erase_if(offers_, [&](const EvictionOffer& offer) {
      return offer.link.has_value() && ++linked > kLinkedMax;
    });
    if (offers_.size() > api::json::kEvictionsMax) {
      offers_.resize(api::json::kEvictionsMax);
    }
  }

  static void Sort(std::vector<EvictionOffer>& offers) {
    std::sort(offers.begin(), offers.end(), [](const EvictionOffer& a, const EvictionOffer& b) {
      return std::tie(a.cause, a.tree.unlinked_time, a.tree.generation) <
             std::tie(b.cause, b.tree.unlinked_time, b.tree.generation);
    });
  }

  const EvictionInput& input_;
  std::map<std::string, const api::WantedWarmup*> listed_;  // by uid
  std::set<std::string> wanted_;
  std::map<std::string, Mount> linked_;  // by name of the tree
  std::set<Owner> has_link_;
  std::vector<EvictionOffer> retained_;
  std::vector<EvictionOffer> offers_;
  std::vector<Mount> unlink_;
  DiskAmount unlinked_;  // usage of the offers without a link
};

}  // namespace

std::string_view Name(EvictionCause cause) {
  switch (cause) {
    case EvictionCause::kUnusable:
      return "unusable";
    case EvictionCause::kCold:
      return "cold";
    case EvictionCause::kSuperseded:
      return "superseded";
    case EvictionCause::kWarmupGone:
      return "warmup_gone";
    case EvictionCause::kDiskPressure:
      return "disk_pressure";
  }
  return "";
}

EvictionPlan PlanEviction(const EvictionInput& input) {
  return Evictor(input).Run();
}

std::vector<EvictionOffer> ConfirmedOffers(const std::vector<EvictionOffer>& offers,
                                           const std::vector<api::EvictableTree>& confirmed,
                                           DiskAmount shortage) {
  std::vector<EvictionOffer> out;
  for (const EvictionOffer& offer : offers) {
    const bool is_needed = offer.cause != EvictionCause::kDiskPressure || !IsNone(shortage);
    if (is_needed && std::find(confirmed.begin(), confirmed.end(), offer.tree) != confirmed.end()) {
      shortage.bytes -= offer.usage.bytes;
      shortage.inodes -= offer.usage.inodes;
      out.push_back(offer);
    }
  }
  return out;
}

}  // namespace cachewarm::agent
