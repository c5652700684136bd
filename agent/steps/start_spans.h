// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/tables.h"
#include "agent/sync/warmup_mount.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

// Returns the trees that a container of the warmup may have mounted that started at `started_time`;
// empty if none is recorded. Leaves out evicted trees: the operator confirms only trees that no pod
// can have mounted.
std::vector<std::string> MountedTrees(const Context& context, const Tables& tables,
                                      const std::string& warmup_uid, const std::string& run_as,
                                      WallTime started_time);

// Knows when pods of this node are starting, so that a compile by a pod that was Ready before can
// be distinguished from one of a start. A pod is starting in its api::StartWindow; a builder also
// until its capture has ended, because its bundle has what it compiles until then; a harvest is no
// start. A start that leaves the spec before it is Ready ends at that time. Call on the sync
// thread.
class StartSpans {
 public:
  // Ended starts are known for this time.
  static constexpr Duration kKept{15 * 60'000};

  // Both arguments must outlive this object.
  StartSpans(const Context& context, const Tables& tables) : context_(context), tables_(tables) {}

  // Call in each iteration in which the spec is known, after Tables::Update().
  void Update(const api::NodeCacheSpec& desired);

  // Returns the index entries that were compiled in the tree in [begin, end] while no pod that may
  // have mounted the tree was starting, and when. Entries are missing if file events were lost.
  std::map<std::string, WallTime> CompiledLate(const std::string& tree, const Mount& mount,
                                               WallTime begin, WallTime end) const;
  // Returns the events of the tree in [begin, end] from the times at which no such pod was
  // starting.
  EventRecord ReadLate(const std::string& tree, const Mount& mount, WallTime begin,
                       WallTime end) const;
  // True if a pod that may have mounted the tree was starting at this time.
  bool IsStarting(const std::string& tree, const Mount& mount, WallTime time) const;

 private:
  struct Span {
    std::string warmup_uid;
    std::string run_as;
    std::vector<std::string> trees;  // that the pod may have mounted; empty: unknown
    WallTime begin{};
    std::optional<WallTime> end;  // none: the pod is still starting
    bool is_requested = false;    // the spec lists it
  };

  // `id` identifies the start; `end` as Span::end.
  void Note(const std::string& id, const api::StartWindow& start, std::optional<WallTime> end);

  const Context& context_;
  const Tables& tables_;
  std::map<std::string, Span> spans_;
};

}  // namespace cachewarm::agent
