// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/tree/journal.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/process/process.h"

namespace cachewarm::agent {
namespace {

// Maximum read rate of a scrub. On a loaded disk, the idle I/O class of the thread lowers it.
constexpr int64_t kBytesPerSecond = int64_t{32} << 20;
// Wait before the first pass over a new tree, so that the pods that start from it can use the disk.
constexpr Duration kFirstWait(300'000);

// Wait before the next pass if the last pass skipped files that were being written.
constexpr Duration kInFlightWait(120'000);

// Varies the wait at random by up to a tenth, so that nodes that activated the same bundle at the
// same time do not scrub it at the same time.
Duration Spread(Duration wait, double random) {
  return Duration(static_cast<int64_t>(static_cast<double>(wait.count()) * (0.9 + 0.2 * random)));
}

}  // namespace

Scrub::Scrub(const Context& context, const Tables& tables, Duration interval)
    : context_(context),
      tables_(tables),
      interval_(interval),
      bandwidth_(kBytesPerSecond, context.clock),
      thread_(1, 1) {}

void Scrub::Collect(History& history) {
  std::optional<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  if (ended.has_value()) {
    running_.clear();
    const bool has_in_flight = ended->outcome.ok() && ended->outcome->in_flight > 0;
    due_[ended->generation] =
        context_.clock.Monotonic() +
        Spread(has_in_flight ? std::min(kInFlightWait, interval_) : interval_, context_.random());
    RecordOutcome(*ended, history);
  }
  WritePending();
}

void Scrub::Update(const Inventory& inventory) {
  if (interval_ <= Duration(0)) {
    return;
  }
  const std::map<std::string, Mount> active = ActiveTrees(inventory);
  const auto is_gone = [&](const auto& each) { return !active.contains(each.first); };
  std::erase_if(due_, is_gone);
  std::erase_if(logged_, is_gone);
  const MonoTime now = context_.clock.Monotonic();
  for (const auto& [generation, mount] : active) {
    if (!due_.contains(generation)) {
      due_[generation] = now + FirstWait(generation);
    }
  }
  const auto next = std::min_element(
      due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (running_.empty() && next != due_.end() && next->second <= now) {
    Start(next->first, active.at(next->first), inventory);
  }
}

std::map<std::string, Mount> Scrub::ActiveTrees(const Inventory& inventory) const {
  std::map<std::string, Mount> active;
  for (const auto& [mount, link] : inventory.links) {
    const auto tree = inventory.generations.find(link.generation);
    // Skip a tree without digests: it was made without a bundle, or its record was lost. In both
    // cases there is nothing to compare it with.
    if (tree != inventory.generations.end() && !tree->second.digests.empty() &&
        !inventory.damaged.contains(link.generation) && !to_write_.contains(link.generation)) {
      active.emplace(link.generation, mount);
    }
  }
  return active;
}

// Returns the wait before this process first scrubs the tree. A restart of the agent does not
// shorten the interval between two passes.
Duration Scrub::FirstWait(const std::string& generation) const {
  const absl::StatusOr<ScrubRecord> record = ReadScrubRecord(context_.root, generation);
  if (!record.ok() || record->at == WallTime{}) {
    return Spread(std::min(kFirstWait, interval_), context_.random());
  }
  const Duration since = context_.clock.Now() - record->at;
  return std::clamp(interval_ - since, Duration(0), interval_);
}

void Scrub::Start(const std::string& generation, const Mount& mount, const Inventory& inventory) {
  const bool posted = thread_.Post([this, generation, mount, table = tables_.Of(mount.uid),
                                    damaged = inventory.damaged](std::stop_token stop) {
    process::LowerThreadPriority();
    absl::StatusOr<Scrubbed> outcome =
        ScrubTree({.root = context_.root,
                   .watcher = context_.watcher,
                   .store = context_.store,
                   .table = *table,
                   .clock = context_.clock,
                   .generation = generation,
                   .damaged = damaged,
                   .pace = [&](int64_t bytes) { return bandwidth_.Acquire(bytes, stop); }},
                  stop);
    {
      std::lock_guard lock(mutex_);
      ended_ = Ended{mount, generation, std::move(outcome)};
    }
    context_.wake();
  });
  if (posted) {
    running_ = generation;
  }
}

void Scrub::RecordOutcome(const Ended& ended, History& history) {
  if (!ended.outcome.ok()) {
    const std::string message = Message(ended.outcome.status());
    context_.metrics.scrubs.Add({"failed"});
    if (!absl::IsCancelled(ended.outcome.status()) &&
        std::exchange(logged_[ended.generation], message) != message) {
      context_.log.Warning("scrub failed", {{"generation", ended.generation}, {"err", message}});
    }
    return;
  }
  const Scrubbed& scrubbed = *ended.outcome;
  context_.metrics.scrubs.Add({scrubbed.damage.has_value() ? "damaged" : "whole"});
  context_.metrics.scrubbed_bytes.Add({}, static_cast<double>(scrubbed.read_bytes));
  if (scrubbed.damage.has_value()) {
    RecordDamage(ended, scrubbed, history);
  } else if (scrubbed.read_files > 0) {
    context_.log.Info("tree scrubbed", {{"generation", ended.generation},
                                        {"files", scrubbed.files},
                                        {"filesRead", scrubbed.read_files},
                                        {"filesModified", scrubbed.modified_by_engine},
                                        {"filesGone", scrubbed.gone}});
  }
}

void Scrub::RecordDamage(const Ended& ended, const Scrubbed& scrubbed, History& history) {
  context_.metrics.failures.Add({std::string(api::reason::kTreeDamaged)});
  context_.log.Error("tree damaged", {{"cacheWarmup", ended.mount.ns + "/" + ended.mount.name},
                                      {"generation", ended.generation},
                                      {"path", scrubbed.damage->path},
                                      {"err", scrubbed.damage->message}});
  to_write_[ended.generation] = *scrubbed.damage;
  if (scrubbed.inconsistent_bundle.empty()) {
    return;
  }
  FailureState& failure = history.bundles[{ended.mount.uid, scrubbed.inconsistent_bundle}];
  RecordFailure(
      failure, FaultKind::kRejected,
      absl::InvalidArgumentError(fmt::format(
          "the entry list of the bundle declares {} for {}, but the layers contain other bytes "
          "(found in two trees)",
          scrubbed.damage->digest.ToString(), scrubbed.damage->path)),
      {.mono = context_.clock.Monotonic(),
       .wall = context_.clock.Now(),
       .random = context_.random()});
  context_.metrics.failures.Add({failure.reason});
  context_.log.Error("bundle quarantined: its entry list does not match its contents",
                     {{"cacheWarmup", ended.mount.ns + "/" + ended.mount.name},
                      {"digest", scrubbed.inconsistent_bundle.ToString()},
                      {"err", failure.message}});
}

// Writes the damage records that are not on disk yet. A damaged tree stays in use until its record
// is on disk: without the record, a restarted agent would not know of the damage and would activate
// the tree again.
void Scrub::WritePending() {
  std::erase_if(to_write_, [&](const auto& each) {
    const absl::Status written = WriteDamagedTree(context_.root, each.first, each.second);
    if (!written.ok()) {
      const std::string message = Message(written);
      if (std::exchange(logged_[each.first], message) != message) {
        context_.log.Error("cannot write damage record; retrying",
                           {{"generation", each.first}, {"err", message}});
      }
    }
    return written.ok();
  });
}

}  // namespace cachewarm::agent
