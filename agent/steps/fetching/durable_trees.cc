// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/durable_trees.h"

#include <utility>

#include "agent/tree/durable.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// Number of files that are opened in one OwnReads scope, and the pause after them. At this rate,
// the events of the opens do not fill the kernel's queue (16,384 events).
constexpr int kOpensPerScope = 64;
constexpr Duration kScopePause(32);
constexpr Duration kSyncRetry(60'000);

// Announces the opens of one tree to the watcher, so that they do not count as a hit.
class PacedOpens {
 public:
  PacedOpens(const Context& context, const std::string& generation, const std::stop_token& stop)
      : context_(context),
        generation_(generation),
        stop_(stop),
        own_reads_(context.watcher.BeginOwnReads(generation)) {}

  absl::Status BeforeOpen(const std::string& path) {
    if (++opens_ > kOpensPerScope) {
      if (!SleepFor(context_.clock, kScopePause, stop_)) {
        return absl::CancelledError("the sync of a tree was stopped");
      }
      own_reads_ = context_.watcher.BeginOwnReads(generation_);
      opens_ = 1;
    }
    own_reads_.Opening(path);
    return absl::OkStatus();
  }

 private:
  const Context& context_;
  const std::string& generation_;
  const std::stop_token& stop_;
  OwnReads own_reads_;
  int opens_ = 0;
};

}  // namespace

void DurableTrees::Update(const Inventory& inventory) {
  Collect();
  const auto is_gone = [&](const auto& each) { return !inventory.generations.contains(each); };
  std::erase_if(settled_, is_gone);
  std::erase_if(retry_at_, [&](const auto& each) { return is_gone(each.first); });
  if (!running_.empty()) {
    return;
  }
  for (const auto& [mount, link] : inventory.links) {
    const auto tree = inventory.generations.find(link.generation);
    if (tree != inventory.generations.end() && IsDue(tree->first, tree->second)) {
      Start(tree->first);
      return;
    }
  }
}

void DurableTrees::Collect() {
  std::optional<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  if (!ended.has_value()) {
    return;
  }
  running_.clear();
  const auto& [generation, status] = *ended;
  if (status.ok()) {
    settled_.insert(generation);
    context_.log.Info("tree is on the disk", {{"generation", generation}});
    return;
  }
  if (absl::IsCancelled(status)) {
    return;
  }
  if (absl::IsDataLoss(status) || absl::IsNotFound(status)) {
    settled_.insert(generation);
  } else {
    retry_at_[generation] = context_.clock.Monotonic() + kSyncRetry;
  }
  context_.metrics.failures.Add({std::string(api::reason::kDiskFailed)});
  if (std::exchange(logged_, Message(status)) != Message(status)) {
    context_.log.Warning(
        "cannot write a tree to the disk; it will not be used after a restart of the "
        "machine",
        {{"generation", generation}, {"err", logged_}});
  }
}

bool DurableTrees::IsDue(const std::string& generation, const Generation& tree) {
  if (tree.digests.empty() || settled_.contains(generation)) {
    return false;
  }
  if (IsDurable(context_.root, generation)) {
    settled_.insert(generation);
    return false;
  }
  const auto retry = retry_at_.find(generation);
  return retry == retry_at_.end() || context_.clock.Monotonic() >= retry->second;
}

void DurableTrees::Start(const std::string& generation) {
  const bool posted = thread_.Post([this, generation](std::stop_token stop) {
    absl::Status status = Run(generation, stop);
    {
      std::lock_guard lock(mutex_);
      ended_ = Ended{generation, std::move(status)};
    }
    context_.wake();
  });
  if (posted) {
    running_ = generation;
  }
}

absl::Status DurableTrees::Run(const std::string& generation, const std::stop_token& stop) const {
  PacedOpens opens(context_, generation, stop);
  return MakeDurable(
      {.root = context_.root,
       .generation = generation,
       .before_open = [&](const std::string& path) { return opens.BeforeOpen(path); }},
      stop);
}

}  // namespace cachewarm::agent
