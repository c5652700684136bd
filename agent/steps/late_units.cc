// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/late_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "agent/evidence/classify.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {
namespace {

// Returns a hash of the names of the units.
std::string HashUnits(const std::set<std::string>& units) {
  std::string names;
  for (const std::string& unit : units) {
    names += unit;
    names += '\n';
  }
  return DigestOf(names).hex().substr(0, 32);
}

// True if `after` is about the same tree with at least as many units.
bool HasGrown(const api::Harvestable& before, const api::Harvestable& after) {
  return !after.generation.empty() && before.generation == after.generation &&
         before.message == after.message && before.units <= after.units;
}

// Adds the files to `used`. Copies `used` only if one of them is new: a capture that runs keeps its
// own files.
void AddUsed(const UsedFiles& added, std::shared_ptr<const UsedFiles>& used) {
  if (std::includes(used->paths.begin(), used->paths.end(), added.paths.begin(),
                    added.paths.end())) {
    return;
  }
  auto copy = std::make_shared<UsedFiles>(*used);
  copy->paths.insert(added.paths.begin(), added.paths.end());
  used = std::move(copy);
}

bool IsActive(const Inventory& inventory, const std::string& generation, const Mount& mount) {
  const auto link = inventory.links.find(mount);
  return link != inventory.links.end() && link->second.generation == generation;
}

bool IsWrite(const FileEvent& event) {
  return event.type != FileEventType::kOpened && event.type != FileEventType::kRead;
}

}  // namespace

void LateUnits::Poll(const std::vector<api::WantedWarmup>& wanted,
                     const std::map<std::string, Mount>& trees, const Inventory& inventory) {
  std::map<std::string, int> harvested;  // WantedWarmup::renew by uid
  for (const api::WantedWarmup& each : wanted) {
    if (each.harvest) {
      harvested.emplace(each.uid, each.renew);
    }
  }
  std::erase_if(trees_, [&](const auto& each) {
    return !trees.contains(each.first) || !harvested.contains(each.second.mount.uid);
  });
  std::erase_if(active_, [&](const auto& each) { return !harvested.contains(each.first.uid); });
  std::erase_if(reported_, [&](const auto& each) { return !harvested.contains(each.first); });
  const MonoTime now = context_.clock.Monotonic();
  const bool is_due = polled_at_ == MonoTime{} || now - polled_at_ >= kPollMin;
  for (const auto& [generation, mount] : trees) {
    const auto renewed = harvested.find(mount.uid);
    if (renewed == harvested.end()) {
      continue;
    }
    const auto [at, is_new] = trees_.try_emplace(generation);
    Tree& tree = at->second;
    if (is_new) {
      tree.mount = mount;
      tree.judged_until = context_.clock.Now();
    } else if (is_due) {
      Judge(generation, context_.clock.Now() - kJudgedAfter, tree);
    }
    CountLacking(inventory, tree);
    tree.goes_first = renewed->second > 0 && IsActive(inventory, generation, mount);
  }
  polled_at_ = is_due ? now : polled_at_;
}

void LateUnits::Judge(const std::string& generation, WallTime until, Tree& tree) const {
  if (until <= tree.judged_until || !tree.refusal.empty()) {
    return;
  }
  const WallTime begin = tree.judged_until + Duration(1);
  tree.judged_until = until;
  const EventRecord record = spans_.ReadLate(generation, tree.mount, begin, until);
  if (!record.complete) {
    tree.refusal = "file events of the tree were lost, so its units may be incomplete";
    return;
  }
  const caches::CacheTable& table = *tables_.Of(tree.mount.uid);
  for (const auto& [entry, time] : CompiledIn(record, begin, table)) {
    // An entry that is gone was written under a temporary name, or the engine has replaced it.
    if (context_.root.Exists(GenerationPath(generation) + "/" + entry).value_or(false)) {
      tree.units.insert(UnitOf(tree.mount, entry));
    }
  }
  AddUsed(UsedIn(record, table), tree.used);
  if (tree.units.size() > kUnitsMax || tree.used->paths.size() > kFilesMax) {
    tree.refusal =
        fmt::format("running pods compiled more than {} units or used more than {} files",
                    kUnitsMax, kFilesMax);
    tree.units.clear();
    tree.used = std::make_shared<const UsedFiles>();
  }
}

std::string LateUnits::UnitOf(const Mount& mount, const std::string& path) const {
  std::string unit = tables_.Of(mount.uid)->Classify(path).unit;
  return unit.empty() ? path : unit;
}

const std::set<std::string>& LateUnits::UnitsOfActive(const Mount& mount,
                                                      const std::string& generation) {
  ActiveUnits& active = active_[mount];
  if (active.generation != generation) {
    active = {.generation = generation, .units = {}};
    // Without the list, for example in a tree without a bundle, every unit is lacking.
    const auto entries = ReadEntryRecords(context_.root, generation);
    for (const EntryRecord& entry : entries.value_or(std::vector<EntryRecord>())) {
      active.units.insert(UnitOf(mount, entry.path));
    }
  }
  return active.units;
}

void LateUnits::CountLacking(const Inventory& inventory, Tree& tree) {
  tree.lacking = 0;
  const auto link = inventory.links.find(tree.mount);
  if (tree.units.empty() || link == inventory.links.end()) {
    return;
  }
  const std::set<std::string>& present = UnitsOfActive(tree.mount, link->second.generation);
  tree.lacking = static_cast<int>(
      std::count_if(tree.units.begin(), tree.units.end(),
                    [&](const std::string& unit) { return !present.contains(unit); }));
}

std::string LateUnits::RefusalOf(const std::string& generation, const Tree& tree) const {
  return IsDamagedTree(context_.root, generation) ? "a scrub found damaged files in the tree"
                                                  : tree.refusal;
}

api::Harvestable LateUnits::BestOffer(const std::string& warmup_uid) const {
  api::Harvestable best;
  std::tuple rank(false, false, false, 0);  // of `best`
  for (const auto& [generation, tree] : trees_) {
    if (tree.mount.uid != warmup_uid || (tree.lacking == 0 && tree.refusal.empty())) {
      continue;
    }
    api::Harvestable offer{.generation = generation,
                           .run_as = tree.mount.run_as,
                           .units = tree.lacking,
                           .set = HashUnits(tree.units),
                           .message = RefusalOf(generation, tree)};
    const std::tuple offered(true, offer.message.empty(), tree.goes_first, offer.units);
    if (offered > rank) {
      rank = offered;
      best = std::move(offer);
    }
  }
  return best;
}

api::Harvestable LateUnits::OfferOf(const std::string& warmup_uid) {
  const MonoTime now = context_.clock.Monotonic();
  api::Harvestable offer = BestOffer(warmup_uid);
  Reported& last = reported_[warmup_uid];
  if (now - last.at >= kReportMin || !HasGrown(last.offer, offer)) {
    if (offer != last.offer) {
      last = {.offer = std::move(offer), .at = now};
    }
  }
  return last.offer;
}

HarvestSource LateUnits::SourceOf(const api::CaptureRequest& request) const {
  const auto found = trees_.find(request.generation);
  if (found == trees_.end() || found->second.mount.uid != request.warmup_uid ||
      found->second.mount.run_as != request.run_as) {
    return {.refusal = fmt::format("tree {} is no longer watched", request.generation)};
  }
  const Tree& tree = found->second;
  if (std::string refusal = RefusalOf(request.generation, tree); !refusal.empty()) {
    return {.refusal = std::move(refusal)};
  }
  if (tree.units.empty()) {
    return {.refusal = "the agent was restarted, and no longer knows what running pods compiled"};
  }
  const WallTime now = context_.clock.Now();
  if (spans_.IsStarting(request.generation, tree.mount, now)) {
    return {.wait = "waiting for the start of a pod in the same directory to complete"};
  }
  const EventRecord record = context_.watcher.ReadTree(request.generation, now - kJudgedAfter, now);
  const caches::CacheTable& table = *tables_.Of(tree.mount.uid);
  if (std::any_of(record.events.begin(), record.events.end(), [&](const FileEvent& event) {
        return IsWrite(event) && table.Classify(event.path).carried();
      })) {
    return {.wait = "waiting until running pods write no file of the tree"};
  }
  return {.used = tree.used};
}

}  // namespace cachewarm::agent
