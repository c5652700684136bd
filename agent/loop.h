// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "agent/steps/capturing/capture_jobs.h"
#include "agent/steps/capturing/truncated_files.h"
#include "agent/steps/context.h"
#include "agent/steps/evicting/evictions.h"
#include "agent/steps/fetching/durable_trees.h"
#include "agent/steps/fetching/fetches.h"
#include "agent/steps/late_compiles.h"
#include "agent/steps/late_units.h"
#include "agent/steps/redis_trees.h"
#include "agent/steps/root_space.h"
#include "agent/steps/scrubbing/quarantine.h"
#include "agent/steps/scrubbing/scrub.h"
#include "agent/steps/start_evidence.h"
#include "agent/steps/start_spans.h"
#include "agent/steps/tables.h"
#include "agent/steps/watched_trees.h"
#include "agent/sync/gpu_conditions.h"
#include "agent/sync/plan.h"
#include "agent/tree/scan.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

struct LoopOptions {
  int64_t limit_bytes = 0;  // setting byteLimit; 0: DiskShares::limit
  DiskShares disk;
  std::string version;
  // Maximum time between two iterations. Polling is needed because kubelet creates directories
  // without notifying the agent.
  Duration idle{15'000};
  // Maximum time between two iterations while a capture, a fetch or an observed pod start is in
  // progress.
  Duration active{1'000};
  // Time between two measurements of the free space, and of the usage of each tree. While the root
  // is unusable, it is measured every `idle` instead.
  Duration measure{300'000};
  Duration scrub{3'600'000};  // time between two scrubs of an active tree; zero: never
  // Called in each iteration with the trees (paths below the root) that need a Redis endpoint
  // (RedisTrees). Null: there is no endpoint.
  std::function<void(std::set<std::string> trees)> serve_redis;
};

api::NodeStatus NodeStatusOf(const GpuObservation& node, const std::string& version);

// The sync loop of the agent. RunIteration() scans the disk, plans, executes the quick steps,
// starts the long ones, polls the captures and the observed pod starts, and reports the status.
// Run() repeats this. SetDesired() and Wake() are thread-safe; call all other methods on one
// thread.
class Loop {
 public:
  // `target` is the uid of the NodeCache that the status belongs to; empty while there is no
  // NodeCache.
  using Report = std::function<void(std::string target, api::NodeCacheStatus status)>;

  // `context` must outlive the loop.
  Loop(const Context& context, GpuObservation gpu, LoopOptions options, Report report);
  // Stops the worker threads of `context` first: their jobs use members of the loop.
  ~Loop();

  // Sets the desired state. Null means that the spec is not known yet or that the NodeCache was
  // deleted; existing directories are then kept.
  void SetDesired(std::shared_ptr<const api::NodeCache> node_cache);
  // Updates the result of the last GPU query (`is_gpu_unknown`, `probe_error`), which the following
  // iterations report. `gpu.facts` must equal the facts in the context; if the facts have changed,
  // create a new loop.
  void SetGpu(GpuObservation gpu);
  void Wake();

  void RunIteration();
  void Run(std::stop_token stop);

  // Returns when the last iteration ended; MonoTime{} if none has ended yet. Thread-safe.
  MonoTime last_iteration() const { return last_iteration_.load(); }
  // Returns true after the root directory was removed. Only a restarted agent can use a new
  // directory at the same path, because a container keeps the mounts that it was created with.
  // Thread-safe.
  bool is_root_gone() const { return is_root_gone_.load(); }

 private:
  std::shared_ptr<const api::NodeCache> TakeDesired();
  absl::Status Reconcile(const api::NodeCacheSpec& desired, bool is_known);
  absl::Status EnsureRoot();
  absl::Status Scan();
  void RecordRootFailure(const absl::Status& why);
  bool Execute(const Step& step);
  absl::Status EvictTrees(const api::NodeCacheSpec& desired);
  void RetryWithoutShortage();
  bool CompleteStep(const Mount& mount, const absl::Status& done, std::string_view what);
  std::vector<CaptureOrder> Orders(const api::NodeCacheSpec& desired) const;
  void UpdateHistory(const api::NodeCacheSpec& desired, bool is_known);
  void PruneHistory(const api::NodeCacheSpec& desired);
  void CountRefusedBundles(const std::vector<api::NodeWarmup>& warmups);
  // Updates the conditions, and logs each one whose status changed.
  void UpdateConditions(const api::NodeOffer& offer);
  void Publish(const std::string& target, const api::NodeCacheSpec& desired);
  MonoTime NextIteration() const;

  const Context& context_;
  const LoopOptions options_;
  Report report_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::shared_ptr<const api::NodeCache> desired_;
  std::optional<GpuObservation> next_gpu_;
  bool awake_ = false;
  std::atomic<MonoTime> last_iteration_{MonoTime{}};
  std::atomic<bool> is_root_gone_ = false;

  GpuObservation gpu_;
  std::vector<api::Condition> conditions_;
  Tables tables_;
  WatchedTrees watched_;
  RedisTrees redis_trees_;
  TruncatedFiles truncated_files_;
  Fetches fetches_;
  DurableTrees durable_trees_;
  Captures captures_;
  StartSpans spans_;
  Starts starts_;
  LateCompiles late_compiles_;
  LateUnits late_units_;
  Quarantine quarantine_;
  Scrub scrub_;
  Evictions evictions_;
  RootSpace space_;
  History history_;
  ScanCache scanned_;
  Inventory inventory_;
  Plan plan_;
  std::map<Mount, std::string> mount_problems_;
  // Problems of the previous iteration; they are already logged and not logged again.
  std::map<Mount, std::string> known_problems_;
  bool has_adopted_ = false;
};

}  // namespace cachewarm::agent
