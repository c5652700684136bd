// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/evicting/evictions.h"

#include <algorithm>
#include <utility>

#include "agent/sync/tree_names.h"
#include "agent/tree/evict.h"
#include "agent/tree/journal.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

const Generation* FindTree(const Inventory& inventory, const std::string& name) {
  for (const auto* trees : {&inventory.generations, &inventory.retired}) {
    if (const auto found = trees->find(name); found != trees->end()) {
      return &found->second;
    }
  }
  return nullptr;
}

// Returns what is still short once the trash is empty.
DiskAmount Without(const DiskAmount& shortage, const DiskAmount& trash) {
  return {.bytes = shortage.bytes - trash.bytes, .inodes = shortage.inodes - trash.inodes};
}

bool IsListed(const api::NodeCacheSpec& desired, const std::string& uid) {
  return std::any_of(desired.warmups.begin(), desired.warmups.end(),
                     [&](const api::WantedWarmup& each) { return each.uid == uid; });
}

}  // namespace

Evictions::Changes Evictions::Update(const api::NodeCacheSpec& desired, const Inventory& inventory,
                                     std::set<std::string> in_use, const DiskAmount& shortage) {
  NoteUnlinked(inventory);
  for (const api::CaptureRequest& capture : desired.captures) {
    for (const auto& [name, tree] : inventory.generations) {
      if (tree.warmup_uid == capture.warmup_uid) {
        in_use.insert(name);
      }
    }
  }
  const DiskAmount short_of = Without(shortage, keeper_.trash());
  EvictionPlan plan = PlanEviction({.desired = desired,
                                    .inventory = inventory,
                                    .first_seen = first_seen_,
                                    .in_use = in_use,
                                    .usage = keeper_.usage(),
                                    .shortage = short_of});
  offers_ = std::move(plan.offers);
  Changes changes{.unlink = std::move(plan.unlink)};
  for (const EvictionOffer& offer : ConfirmedOffers(offers_, desired.evict, short_of)) {
    if (Remove(offer, inventory)) {
      ++changes.evicted;
      // The record of damage keeps the same bundles from being unpacked under the same name.
      if (!IsListed(desired, offer.tree.warmup_uid) || IsColdId(offer.tree.generation)) {
        RemoveDamagedTree(context_.root, offer.tree.generation).IgnoreError();
      }
      std::erase(offers_, offer);
    }
  }
  evictable_bytes_ = 0;
  for (const EvictionOffer& offer : offers_) {
    evictable_bytes_ += offer.usage.bytes;
  }
  return changes;
}

absl::Status Evictions::Discard(const std::string& path) {
  CW_RETURN_IF_ERROR(MoveToTrash(context_.root, path));
  keeper_.AddTrash(path, {});
  return absl::OkStatus();
}

// Records when this process first saw trees whose history has no time of the unlink.
void Evictions::NoteUnlinked(const Inventory& inventory) {
  std::set<std::string> linked;
  for (const auto& [mount, link] : inventory.links) {
    linked.insert(link.generation);
  }
  std::erase_if(first_seen_, [&](const auto& each) {
    return linked.contains(each.first) || FindTree(inventory, each.first) == nullptr;
  });
  const WallTime now = context_.clock.Now();
  for (const auto* trees : {&inventory.generations, &inventory.retired}) {
    for (const auto& [name, tree] : *trees) {
      if (!linked.contains(name)) {
        first_seen_.try_emplace(name, now);
      }
    }
  }
}

bool Evictions::Remove(const EvictionOffer& offer, const Inventory& inventory) {
  const std::string& name = offer.tree.generation;
  const Generation* tree = FindTree(inventory, name);
  const absl::Status removed =
      Evict(context_.root, {.name = name,
                            .link = offer.link,
                            .warmup_uid = offer.tree.warmup_uid,
                            .run_as = offer.link.has_value() ? offer.link->run_as
                                      : tree == nullptr      ? std::string()
                                                             : tree->run_as});
  if (!removed.ok()) {
    if (std::exchange(logged_, Message(removed)) != Message(removed)) {
      context_.log.Error("cannot evict a tree; retrying", {{"generation", name}, {"err", logged_}});
    }
    context_.metrics.failures.Add({std::string(api::reason::kDiskFailed)});
    return false;
  }
  watched_.Remove(name);
  keeper_.AddTrash(name, offer.tree.warmup_uid);
  evicted_bytes_ += offer.usage.bytes;
  context_.metrics.evictions.Add({std::string(Name(offer.cause))});
  context_.metrics.evicted_bytes.Add({}, static_cast<double>(offer.usage.bytes));
  context_.log.Info("tree evicted", {{"generation", name},
                                     {"warmupUID", offer.tree.warmup_uid},
                                     {"reason", Name(offer.cause)},
                                     {"bytes", offer.usage.bytes}});
  return true;
}

std::vector<api::EvictableTree> Evictions::Offers() const {
  std::vector<api::EvictableTree> offers;
  for (const EvictionOffer& offer : offers_) {
    offers.push_back(offer.tree);
  }
  return offers;
}

}  // namespace cachewarm::agent
