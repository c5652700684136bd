// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/evicting/disk_keeper.h"

#include <algorithm>
#include <utility>

#include "agent/tree/evict.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"
#include "lib/process/process.h"

namespace cachewarm::agent {
namespace {

// Names that one pass removes of each tree; about a second of work on a slow disk.
constexpr int64_t kRemovedAtOnce = 50'000;
constexpr int64_t kMeasuredMax = 1'000'000;
constexpr int64_t kNameBytesMax = 64 << 20;
constexpr int64_t kBlockBytes = 4096;
constexpr Duration kTrashRetry(60'000);

}  // namespace

absl::StatusOr<DiskAmount> MeasureUsage(const fs::Dir& root, const std::string& tree) {
  DiskAmount usage;
  const absl::Status walked =
      fs::Walk(root, GenerationPath(tree),
               {.entries_max = kMeasuredMax, .name_bytes_max = kNameBytesMax, .depth_max = 1024},
               [&](const fs::WalkEntry& entry) {
                 ++usage.inodes;
                 usage.bytes += fs::AllocatedShare(entry.stat);
                 return fs::WalkNext::kContinue;
               });
  if (absl::IsResourceExhausted(walked)) {
    return Max(usage, {.bytes = kMeasuredMax * kBlockBytes, .inodes = kMeasuredMax});
  }
  CW_RETURN_IF_ERROR(walked);
  return usage;
}

DiskKeeper::DiskKeeper(const Context& context, Duration interval)
    : context_(context), interval_(interval), thread_(1, 1) {}

bool DiskKeeper::Update(const Inventory& inventory) {
  const bool freed = Collect();
  const auto is_gone = [&](const auto& each) {
    return !inventory.generations.contains(each.first) && !inventory.retired.contains(each.first);
  };
  std::erase_if(usage_, is_gone);
  std::erase_if(measured_at_, is_gone);
  std::erase_if(owners_, is_gone);
  for (const auto* trees : {&inventory.generations, &inventory.retired}) {
    for (const auto& [name, tree] : *trees) {
      usage_.try_emplace(name, tree.usage);
      owners_[name] = tree.warmup_uid;
    }
  }
  const std::vector<std::string> due = DueTrees();
  const bool empties = trash_emptied_ < trash_added_ && context_.clock.Monotonic() >= retry_at_;
  if (running_ || (due.empty() && !empties)) {
    return freed;
  }
  covered_ = trash_added_;
  const bool has_added = empties && trash_added_ > 0;
  running_ = thread_.Post([this, due, empties, has_added](std::stop_token stop) {
    process::LowerThreadPriority();
    Pass pass = Run(due, empties, stop);
    const bool wakes = pass.emptied || has_added;
    {
      std::lock_guard lock(mutex_);
      ended_ = std::move(pass);
    }
    if (wakes) {
      context_.wake();
    }
  });
  return freed;
}

void DiskKeeper::AddTrash(const std::string& name, const std::string& warmup_uid) {
  if (const auto found = usage_.find(name); found != usage_.end()) {
    trash_ = trash_ + found->second;
    usage_.erase(found);
    // Measure the other trees of the warmup again: files that they share with this tree by hard
    // links now belong to fewer trees, so each tree has a larger share.
    std::erase_if(measured_at_,
                  [&](const auto& each) { return owners_[each.first] == warmup_uid; });
  }
  ++trash_added_;
  retry_at_ = MonoTime{};
}

DiskAmount DiskKeeper::Total() const {
  DiskAmount total = trash_;
  for (const auto& [name, amount] : usage_) {
    total = total + amount;
  }
  return total;
}

// Returns true if the pass emptied the trash.
bool DiskKeeper::Collect() {
  std::optional<Pass> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  if (!ended.has_value()) {
    return false;
  }
  running_ = false;
  for (const auto& [name, amount] : ended->usage) {
    if (const auto known = usage_.find(name); known != usage_.end()) {
      known->second = amount;
      measured_at_[name] = context_.clock.Monotonic();
    }
  }
  for (const std::string& name : ended->unmeasured) {
    measured_at_[name] = context_.clock.Monotonic();  // keeps the usage until the next measurement
  }
  if (!ended->status.ok()) {
    retry_at_ = context_.clock.Monotonic() + kTrashRetry;
    if (std::exchange(logged_, Message(ended->status)) != Message(ended->status)) {
      context_.log.Error("cannot remove an evicted tree; retrying", {{"err", logged_}});
    }
    return false;
  }
  // An earlier pass may have removed trees that were added while it ran.
  const bool freed = ended->emptied || trash_emptied_ < covered_;
  trash_emptied_ = covered_;
  if (trash_emptied_ == trash_added_) {
    trash_ = {};
  }
  logged_.clear();
  return freed;
}

std::vector<std::string> DiskKeeper::DueTrees() const {
  const MonoTime now = context_.clock.Monotonic();
  std::vector<std::string> due;
  for (const auto& [name, amount] : usage_) {
    const auto found = measured_at_.find(name);
    if (found == measured_at_.end() || now - found->second >= interval_) {
      due.push_back(name);
    }
  }
  return due;
}

DiskKeeper::Pass DiskKeeper::Run(const std::vector<std::string>& trees, bool empties,
                                 const std::stop_token& stop) const {
  Pass pass;
  for (bool is_empty = !empties; !is_empty && !stop.stop_requested();) {
    const absl::StatusOr<bool> was_empty = EmptyTrash(context_.root, kRemovedAtOnce, stop);
    if (!was_empty.ok()) {
      pass.status = was_empty.status();
      break;
    }
    is_empty = *was_empty;
    pass.emptied |= !is_empty;
  }
  for (const std::string& tree : trees) {
    if (stop.stop_requested()) {
      break;
    }
    if (const auto usage = MeasureUsage(context_.root, tree); usage.ok()) {
      pass.usage[tree] = *usage;
    } else {
      pass.unmeasured.insert(tree);
    }
  }
  return pass;
}

}  // namespace cachewarm::agent
