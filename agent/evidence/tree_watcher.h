// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/evidence/events.h"
#include "agent/evidence/own_reads.h"
#include "agent/evidence/scan_budget.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

namespace cachewarm::agent {

struct WatcherLimits {
  // Limit for all trees together; each watched directory takes 1 KB of kernel memory. Watches count
  // against the user of the agent, which is often that of kubelet and the container runtime, so the
  // watcher uses at most a quarter of the number in `max_watches_file`.
  int directories_max = 50'000;
  std::string max_watches_file = "/proc/sys/fs/inotify/max_user_watches";
  int directories_per_tree = 20'000;
  int64_t directory_bytes_max = 16 << 20;  // of the paths of all watched directories
  int depth_max = 32;
  int events_max = 200'000;        // limit of kept events per tree; each takes 24 bytes
  int paths_max = 50'000;          // limit of distinct paths per tree
  Duration keep{2 * 3600 * 1000};  // older events are dropped
  // A tree that exceeds it is not watched for the rest of the window.
  ScanBudgetLimits budget;
};

// One generation on disk. A warmup has several: the active one and those that pods still use.
struct WatchedTree {
  std::string generation;  // unique name of the generation
  std::string warmup_uid;
  std::string directory;  // absolute path of the tree
  std::string run_as;     // user of the pods: "u1000" or "image"; empty matches every user
  // True for a new tree that no pod can have used yet, so that no earlier event is missing. False
  // for a tree that was found after a restart, or whose directory kubelet made: its earlier events
  // are unknown.
  bool fresh = false;
};

// Records which files engines read and write in the trees of this node. Uses inotify, on its own
// thread. If a directory cannot be watched, records are incomplete, but workloads are never
// affected; the watcher scans such a tree again after a pause, and its records are complete from
// then on if every directory can be watched. Trees are untrusted input, because pods write them: no
// link is followed, and every count is limited. Thread-safe.
class Watcher {
 public:
  // Starts the watcher thread. `clock` and `log` must outlive the watcher. Errors:
  // RESOURCE_EXHAUSTED if the node has no inotify instance left (sysctl
  // fs.inotify.max_user_instances).
  static absl::StatusOr<std::unique_ptr<Watcher>> Start(const WatcherLimits& limits,
                                                        const Clock& clock, Log& log);

  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  // Watches every directory of the tree before it returns; call it before the tree is activated.
  // Adding a generation twice has no effect. Errors: NOT_FOUND if the directory does not exist.
  virtual absl::Status AddTree(const WatchedTree& tree) = 0;
  // Removes the watches and events of the tree.
  virtual void RemoveTree(std::string_view generation) = 0;

  // Returns the events in [begin, end] of the warmup's trees for `run_as` (empty: of all users).
  // Includes all events that the kernel had queued at the call. The record is incomplete if no such
  // tree is watched, or if these events could not be handled within 10 s.
  virtual EventRecord Read(std::string_view warmup_uid, std::string_view run_as, WallTime begin,
                           WallTime end) = 0;
  EventRecord Read(std::string_view warmup_uid, WallTime begin, WallTime end) {
    return Read(warmup_uid, "", begin, end);
  }
  // Returns the events of one tree, as Read() does.
  virtual EventRecord ReadTree(std::string_view generation, WallTime begin, WallTime end) = 0;

  // Begins a scope for the agent's own reads of a tree (capture, scrub). In the scope, each
  // Opening(path) removes one open and one close of that file from the record.
  virtual OwnReads BeginOwnReads(std::string_view generation) = 0;

  // Numbers for metrics: watched directories, kept events, overflows of the kernel's queue.
  virtual int directories() const = 0;
  virtual int events() const = 0;
  virtual int overflows() const = 0;

 protected:
  Watcher() = default;
};

}  // namespace cachewarm::agent
