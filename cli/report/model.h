// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/engine_starts.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/json_fwd.h"

// The content of a report, computed from CacheWarmups and NodeCaches. Plain values, no I/O. Texts
// are as they came from the cluster: the page escapes and cuts them. Numbers are finite.
namespace cachewarm::cli::report {

struct RecentStart {
  api::StartResult result = api::StartResult::kUnknown;
  double seconds = 0;  // container started → Ready
  double hold_seconds = 0;
};

struct WarmupRow {
  std::string name;  // "namespace/name", or the name alone in a report on one namespace
  api::StartCounts counts;
  double cold_median_seconds = 0;  // 0: no such start yet
  double warm_median_seconds = 0;
  double hold_median_seconds = 0;
  double saved_seconds = 0;
  double lost_seconds = 0;
  double saved_gpu_seconds = 0;
  double lost_gpu_seconds = 0;
  double builder_gpu_seconds = 0;
  WallTime counting_started_time{};
  std::vector<RecentStart> recent;  // oldest first; at most 64
  std::vector<api::EngineComparison> engines;

  double NetSeconds() const { return saved_seconds - lost_seconds; }
};

struct BundleRow {
  std::string warmup;
  std::string gpu_type;
  std::string image;
  Digest digest;
  int64_t bytes = 0;
  int64_t files = 0;
  int64_t nodes_desired = 0;
  int64_t nodes_ready = 0;
  int64_t nodes_failed = 0;
  WallTime published_time{};
};

struct GpuTypeRow {
  std::string gpu_type;
  api::StartCounts counts;
  int64_t bundles = 0;       // distinct digests
  int64_t bundle_bytes = 0;  // of distinct digests
  int64_t nodes = 0;
  int64_t devices = 0;
};

struct NodeRow {
  std::string name;
  std::string gpu_type;
  int64_t devices = 0;
  int64_t used_bytes = 0;
  int64_t limit_bytes = 0;  // 0: no limit
  int64_t free_bytes = 0;
  int64_t bundles_active = 0;  // of the warmups in the report
  int64_t bundles_desired = 0;
  WallTime heartbeat{};
};

// A condition that needs the attention of a user, or a suspended bundle.
struct ProblemRow {
  std::string object;  // "CacheWarmup models/llama"
  std::string reason;
  std::string message;
  friend auto operator<=>(const ProblemRow&, const ProblemRow&) = default;
};

struct Report {
  std::string ns;  // empty: the whole cluster
  std::string version;
  WallTime time{};                    // when the objects were read
  std::vector<WarmupRow> warmups;     // largest net saving first
  std::vector<GpuTypeRow> gpu_types;  // sorted by name
  std::vector<BundleRow> bundles;     // largest first
  std::vector<NodeRow> nodes;         // most bytes used first
  std::vector<ProblemRow> problems;   // sorted by object
  WarmupRow total;                    // sums over the warmups, without medians
  int64_t node_bytes = 0;
  std::string nodes_missing;           // why the NodeCaches could not be read; empty: they were
  std::vector<ProblemRow> unreadable;  // objects that could not be decoded; each once, sorted
};

// Returns the starts that count for the hit rate: all except builders, which must compile, and
// those without evidence.
int64_t CountedStarts(const api::StartCounts& counts);
// Returns the starts that had no use of the cache although they count.
int64_t StartsWithoutUse(const api::StartCounts& counts);
void AddCounts(const api::StartCounts& from, api::StartCounts& to);

// Collects objects and computes the report. An object that is added twice replaces the first one,
// because a list that expired is read again.
class Collector {
 public:
  // `ns` empty: the whole cluster.
  explicit Collector(std::string ns) : ns_(std::move(ns)) {}

  // Add an object as the API server sent it. One that cannot be decoded is listed in the report.
  void AddWarmup(const codec::Json& object);
  void AddNode(const codec::Json& object);
  // Records that the NodeCaches cannot be read, for example for want of rights.
  void SetNodesMissing(std::string message) { nodes_missing_ = std::move(message); }

  Report Finish(WallTime time, std::string version) const;

 private:
  struct Warmup {
    WarmupRow row;
    std::vector<api::GpuTypeStarts> gpu_types;
    std::vector<BundleRow> bundles;
    std::vector<ProblemRow> problems;
  };
  struct Node {
    NodeRow row;
    std::vector<ProblemRow> problems;
    bool in_scope = true;  // a warmup of the namespace may run there
  };

  std::string NameOf(const std::string& ns, const std::string& name) const;
  void AddUnreadable(std::string_view kind, const codec::Json& object, const absl::Status& reason);
  void AddGpuTypes(Report& report) const;

  const std::string ns_;
  std::map<std::pair<std::string, std::string>, Warmup> warmups_;
  std::map<std::string, Node> nodes_;
  std::vector<ProblemRow> unreadable_;
  std::string nodes_missing_;
};

}  // namespace cachewarm::cli::report
