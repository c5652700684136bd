// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/evidence/events.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

namespace cachewarm::agent {

struct WatcherLimits {
  int directories_max = 50'000;  // watched, all trees together; 1 KB of kernel memory each
  int directories_per_tree = 20'000;
  int depth_max = 32;
  int events_max = 200'000;        // kept for each tree; 24 bytes each
  int paths_max = 50'000;          // distinct names for each tree
  Duration keep{2 * 3600 * 1000};  // older events are forgotten
};

// One generation on disk. A warmup has several: the active one and those that pods still use.
struct WatchedTree {
  std::string generation;  // unique
  std::string warmup_uid;
  std::string directory;  // absolute
  std::string run_as;     // "u1000", "image"; empty: not told apart
  // No pod can have used it yet (staged by us, not activated): its record has no beginning that
  // a start window could lie before. False for trees that are found after a restart or adopted.
  bool fresh = false;
};

class OwnReads;

// Records what engines do in the trees of this node, by inotify, on one thread of its own.
// Thread-safe. Fails soft: what could not be watched makes records incomplete, never an error for
// a workload. Everything in a watched tree is written by pods and hostile: no link is followed,
// and every count is bounded.
class Watcher {
 public:
  // `clock` and `log` outlive it. RESOURCE_EXHAUSTED when the node has no inotify instance left
  // (sysctl fs.inotify.max_user_instances).
  static absl::StatusOr<std::unique_ptr<Watcher>> Start(const WatcherLimits& limits,
                                                        const Clock& clock, Log& log);

  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  // Watches every directory of the tree before it returns: call it before the tree is activated.
  // NOT_FOUND when the directory is not there; adding a generation twice does nothing.
  virtual absl::Status AddTree(const WatchedTree& tree) = 0;
  // Forgets the tree's watches and events.
  virtual void RemoveTree(std::string_view generation) = 0;

  // Events in [begin, end] of the warmup's trees for `run_as` (empty: for all), everything
  // included that the kernel had queued when it was called. Incomplete when there is no such tree.
  virtual EventRecord Read(std::string_view warmup_uid, std::string_view run_as, WallTime begin,
                           WallTime end) = 0;
  EventRecord Read(std::string_view warmup_uid, WallTime begin, WallTime end) {
    return Read(warmup_uid, "", begin, end);
  }
  // Same, of one tree.
  virtual EventRecord ReadTree(std::string_view generation, WallTime begin, WallTime end) = 0;

  // For our own reading of a tree (capture, scrub): while the scope lives, each Opening(path)
  // takes one open and one close of that file out of the record.
  virtual OwnReads BeginOwnReads(std::string_view generation) = 0;

  // For metrics: watched directories, kept events, and how often the kernel's queue overflowed.
  virtual int directories() const = 0;
  virtual int events() const = 0;
  virtual int overflows() const = 0;

 protected:
  Watcher() = default;
};

// Scope of our own reads of one tree. Movable; thread-safe as far as the Watcher is.
class OwnReads {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void Opening(std::string_view path) = 0;
  };

  explicit OwnReads(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  // Call right before opening `path` (relative to the tree) read-only and closing it once.
  void Opening(std::string_view path) {
    if (sink_ != nullptr) {
      sink_->Opening(path);
    }
  }

 private:
  std::unique_ptr<Sink> sink_;
};

}  // namespace cachewarm::agent
