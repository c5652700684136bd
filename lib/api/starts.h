// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"

// The starts in the status of a CacheWarmup (crds/cachewarmups.yaml). Plain values.
namespace cachewarm::api {

// Result of a pod's first start (crds/cachewarmups.yaml, status.starts.counts). Cold: the pod had
// no cache, because it was not injected, injection was suspended, or the node was not warm yet.
enum class StartResult { kBuilder, kCold, kHit, kPartial, kMiss, kInert, kHollow, kUnknown };
inline constexpr std::array kStartResults = {
    StartResult::kBuilder, StartResult::kCold,  StartResult::kHit,    StartResult::kPartial,
    StartResult::kMiss,    StartResult::kInert, StartResult::kHollow, StartResult::kUnknown};

// Result of reading the log of a container after its start: it reports the start, it does not, or
// it could not be read.
enum class EngineLog { kFound, kNothingFound, kUnreadable };

// A start as the engine reports it in the log of its container (operator/engine_log). 0: not
// reported.
struct EngineStart {
  EngineLog log = EngineLog::kUnreadable;
  double weights_seconds = 0;        // loading the weights
  double compile_seconds = 0;        // torch.compile
  double graph_capture_seconds = 0;  // capturing CUDA graphs
  double init_seconds = 0;           // "init engine" of vLLM, which contains the last two
  int64_t kv_cache_tokens = 0;       // capacity of the KV cache
  friend bool operator==(const EngineStart&, const EngineStart&) = default;
};

// The measurements of one start. start_seconds is a whole number: Kubernetes stores whole seconds.
struct StartSample {
  std::string pod_uid;
  std::string pod;
  std::string node;
  std::string key;
  std::string gpu_type;
  StartResult result = StartResult::kUnknown;
  double start_seconds = 0;  // container started → Ready
  double hold_seconds = 0;   // created → gate released
  // Duration of the compiles, from file events; only for builders and pods with the result miss.
  double compile_seconds = 0;
  // From the start of the container to the last compiled file; 0: none was compiled, or not known.
  double compiled_after_seconds = 0;
  double saved_seconds = 0;  // net time saved; negative if the cache cost time
  int devices = 0;           // accelerators of the container
  // Why the pod compiled and what to do, for users; empty if it did not compile or nothing is
  // known.
  std::string cause;
  std::optional<EngineStart> engine;  // nullopt: the log was not read
  friend bool operator==(const StartSample&, const StartSample&) = default;
};

struct StartCounts {
  int64_t builder = 0;
  int64_t cold = 0;
  int64_t hit = 0;
  int64_t partial = 0;
  int64_t miss = 0;
  int64_t inert = 0;
  int64_t hollow = 0;
  int64_t unknown = 0;
  friend bool operator==(const StartCounts&, const StartCounts&) = default;
};

int64_t& CountOf(StartCounts& counts, StartResult result);
int64_t CountOf(const StartCounts& counts, StartResult result);

// Totals of the starts on nodes of one GPU type. They never decrease.
struct GpuTypeStarts {
  std::string gpu_type;
  StartCounts counts;
  double saved_seconds = 0;  // as Starts::saved_seconds
  double lost_seconds = 0;   // as Starts::lost_seconds
  // The same seconds, each multiplied by the number of devices of its pod.
  double saved_gpu_seconds = 0;
  double lost_gpu_seconds = 0;
  // Devices of builder Jobs, multiplied by the seconds from the start of the builder's container to
  // the end of the build. A builder that is a pod of the workload occupies no additional device.
  double builder_gpu_seconds = 0;
  friend bool operator==(const GpuTypeStarts&, const GpuTypeStarts&) = default;
};

inline constexpr size_t kGpuTypeStartsMax = 32;

struct Starts {
  WallTime counting_started_time{};
  StartCounts counts;
  std::vector<GpuTypeStarts> gpu_types;  // sorted by GPU type; at most kGpuTypeStartsMax
  double hold_median_seconds = 0;
  double cold_median_seconds = 0;
  double warm_median_seconds = 0;
  double saved_seconds = 0;         // sum of the positive net savings
  double lost_seconds = 0;          // sum of the negative net savings, as a positive number
  std::vector<StartSample> recent;  // newest last; at most 64
  std::vector<std::string> counted_pod_uids;  // uids of the 256 pods counted last
  friend bool operator==(const Starts&, const Starts&) = default;
};

}  // namespace cachewarm::api
