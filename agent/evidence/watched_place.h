// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/evidence/event_log.h"
#include "agent/evidence/scan_budget.h"
#include "agent/evidence/tree_watcher.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// The state of one tree of a Watcher.
struct Tree {
  Tree(WatchedTree t, fs::Dir d, const EventLog::Limits& limits, const ScanBudgetLimits& budgeted,
       WallTime since)
      : tree(std::move(t)), root(std::move(d)), log(limits, since), budget(budgeted) {}

  WatchedTree tree;
  fs::Dir root;
  EventLog log;
  ScanBudget budget;
  int directories = 0;
  bool partial = false;   // a directory is not watched, so all records of this tree are incomplete
  bool reported = false;  // the log says that the tree is partial
  // A scan of the whole tree is due at `scan_at`. Until then all records are incomplete.
  bool needs_scan = false;
  MonoTime scan_at{};
  int64_t whole_scans = 0;
};

// A watched directory: the tree that contains it, and its path in that tree.
struct Place {
  Tree* tree = nullptr;
  std::string path;
  int64_t whole_scan = 0;  // Tree::whole_scans when a scan last found the directory
};

// Returns the path of `name`, which is in the directory `place`.
inline std::string PathIn(const Place& place, std::string_view name) {
  std::string path;
  path.reserve(place.path.size() + 1 + name.size());
  if (!place.path.empty()) {
    path.append(place.path).push_back('/');
  }
  return path.append(name);
}

// Returns true for paths that no bundle can contain. Their events are dropped to save memory.
inline bool IsNoise(std::string_view path) {
  const caches::Skip skip = caches::CacheTable::AllPresets().Classify(path).skip;
  return skip == caches::Skip::kLock || skip == caches::Skip::kTemporary ||
         skip == caches::Skip::kUnsafePath;
}

inline std::optional<WallTime> ModifiedAt(const Tree& tree, const std::string& path) {
  const absl::StatusOr<fs::FileStat> stat = tree.root.Stat(path);
  if (!stat.ok()) {
    return std::nullopt;
  }
  return WallTime(Duration(stat->mtime_ns / 1'000'000));
}

}  // namespace cachewarm::agent
