// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "agent/steps/capturing/captures.h"
#include "agent/steps/capturing/truncated_files.h"
#include "agent/steps/context.h"
#include "agent/steps/fetching/fetches.h"
#include "agent/steps/scrubbing/quarantine.h"
#include "agent/steps/scrubbing/scrub.h"
#include "agent/steps/starts.h"
#include "agent/steps/tables.h"
#include "agent/steps/watched_trees.h"
#include "agent/sync/plan.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

struct LoopOptions {
  int64_t limit_bytes = 0;  // byteLimit; 0: none
  std::string version;
  // Between turns when nothing calls: kubelet makes directories without telling us.
  Duration idle{15'000};
  Duration active{1'000};     // while a capture or a start window is open
  Duration measure{300'000};  // between measurements of the whole tree; `idle` if it is unusable
  Duration scrub{3'600'000};  // between two passes over an active tree; zero: never
};

api::NodeStatus NodeStatusOf(const fingerprint::NodeFacts& node, const std::string& version);

// The agent's one mover: scan, plan, do the quick steps, start the long ones, look at captures and
// starts, report. RunIteration() does it once; Run() is only the pump. SetDesired() and Wake() may
// be called from any thread, the rest from one.
class Loop {
 public:
  // `target` is the uid of the NodeCache that the status answers; empty while there is none.
  using Report = std::function<void(std::string target, api::NodeCacheStatus status)>;

  // `context` must outlive it.
  Loop(const Context& context, LoopOptions options, Report report);
  // Stops the workers of `context` first: their jobs use the loop's parts.
  ~Loop();

  // What the operator wants; null before it is known, and when our NodeCache is gone: then
  // directories are kept as they are.
  void SetDesired(std::shared_ptr<const api::NodeCache> node_cache);
  void Wake();

  void RunIteration();
  void Run(std::stop_token stop);

  // When the last turn ended; the epoch before the first.
  MonoTime last_iteration() const { return last_iteration_.load(); }
  // The root directory was removed under us. The path may lead to another one by now, which only
  // an agent that starts anew can open: a container keeps what was mounted when it was created.
  bool is_root_gone() const { return is_root_gone_.load(); }

 private:
  std::shared_ptr<const api::NodeCache> TakeDesired();
  absl::Status Reconcile(const api::NodeCacheSpec& desired, bool is_known);
  absl::Status EnsureRoot();
  absl::Status Scan();
  void RecordRootFailure(const absl::Status& why);
  bool Execute(const Step& step);
  bool CompleteStep(const Mount& mount, const absl::Status& done, std::string_view what);
  std::vector<CaptureOrder> Orders(const api::NodeCacheSpec& desired) const;
  void UpdateHistory(const api::NodeCacheSpec& desired, bool is_known);
  void PruneHistory(const api::NodeCacheSpec& desired);
  void MeasureRoot(bool force);
  void Publish(const std::string& target, const api::NodeCacheSpec& desired);
  DiskLimits Disk() const;
  MonoTime NextIteration() const;

  const Context& context_;
  const LoopOptions options_;
  Report report_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::shared_ptr<const api::NodeCache> desired_;
  bool awake_ = false;
  std::atomic<MonoTime> last_iteration_{MonoTime{}};
  std::atomic<bool> is_root_gone_ = false;

  Tables tables_;
  WatchedTrees watched_;
  TruncatedFiles truncated_files_;
  Fetches fetches_;
  Captures captures_;
  Starts starts_;
  Quarantine quarantine_;
  Scrub scrub_;
  History history_;
  Inventory inventory_;
  Plan plan_;
  std::map<Mount, std::string> mount_problems_;
  std::map<Mount, std::string> known_problems_;  // of the turn before, already in the log
  api::RootStatus root_status_;
  MonoTime measured_at_{};
  bool has_adopted_ = false;
};

}  // namespace cachewarm::agent
