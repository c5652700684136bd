// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/digest.h"

// The bundles and builds in the status of a CacheWarmup (crds/cachewarmups.yaml). Plain values.
namespace cachewarm::api {

// A pod that started with a bundle and was not Ready in time (see WarmupSpec::hang_seconds).
struct HungStart {
  std::string pod_uid;
  std::string pod;
  std::string node;
  std::string group;         // name of the pod's group (pods that run together); empty: none
  WallTime started_time{};   // start of the container
  WallTime detected_time{};  // when the start had exceeded its time limit
  friend bool operator==(const HungStart&, const HungStart&) = default;
};

inline constexpr size_t kHungStartsMax = 8;
inline constexpr size_t kExtendedBundlesMax = 8;

// A bundle that is withheld from every node, because starts with it hung or its engine refused it.
struct SuspendedBundle {
  std::string key;
  Digest digest;
  std::string gpu_type;
  std::string cpu_class;
  std::string image;
  bool native = true;                // as in BundleStatus
  std::vector<std::string> extends;  // as in BundleStatus
  WallTime suspended_time{};
  // At most kHungStartsMax; empty if the proof of the bundle failed.
  std::vector<HungStart> hung_starts;
  std::string message;
  friend bool operator==(const SuspendedBundle&, const SuspendedBundle&) = default;
};

inline constexpr size_t kSuspendedBundlesMax = 32;

// One factor of the start of a builder (operator/factors/start_factors.h).
struct StartFactor {
  std::string name;
  std::string value;
  friend bool operator==(const StartFactor&, const StartFactor&) = default;
};

inline constexpr size_t kStartFactorsMax = 128;

// One published bundle, with counts of the nodes that need it.
struct BundleStatus {
  std::string key;  // 64 hex digits
  std::string gpu_type;
  std::string cpu_class;
  std::string image;  // as written in the pod template
  Digest digest;
  int64_t bytes = 0;
  int files = 0;
  bool native = true;  // has native host code: only nodes of `cpu_class` use the bundle
  double compile_seconds = 0;
  std::string builder_pod;
  std::string builder_node;
  WallTime published_time{};
  WallTime harvested_time{};  // when a harvest extended the bundle last; zero: none has
  // The bundles that harvests extended to this one, newest last; at most kExtendedBundlesMax. A
  // node on which one of them is active counts as warm.
  std::vector<std::string> extends;
  int nodes_desired = 0;
  int nodes_ready = 0;
  int nodes_failed = 0;
  int nodes_waiting = 0;               // nodes that wait for a fetch slot
  std::vector<HungStart> hung_starts;  // at most kHungStartsMax
  // Of the builder's start, sorted by name; at most kStartFactorsMax. Empty if an older operator
  // recorded the bundle.
  std::vector<StartFactor> factors;
  std::string message;
  friend bool operator==(const BundleStatus&, const BundleStatus&) = default;
};

enum class BuilderState { kElected, kCapturing, kProving, kCaptured, kFailed };

// The bundle of a build before it is recorded in status.bundles. If the builder belongs to a group
// of pods, the bundle has the files of those captured so far.
struct CapturedBundle {
  Digest digest;
  int64_t bytes = 0;
  int files = 0;
  bool native = true;
  double compile_seconds = 0;
  WallTime captured_time{};          // when the last pod was captured, or its capture given up
  std::vector<StartFactor> factors;  // as in BundleStatus
  friend bool operator==(const CapturedBundle&, const CapturedBundle&) = default;
};

// The proof of a captured bundle (CompileSpec::proof) on the builder's node.
struct ProofStatus {
  std::string job;      // name of the proof Job; empty until it is requested
  std::string pod_uid;  // pod of that Job; empty until its container has started
  WallTime started_time{};
  WallTime requested_time{};  // when the Job was first requested; zero before
  WallTime answered_time{};   // time of the last response to compile.requests; zero before
  friend bool operator==(const ProofStatus&, const ProofStatus&) = default;
};

inline constexpr size_t kRanksMax = 64;

// The last build of one key. A new leader computes the same backoff from `attempt` and the times.
struct BuilderStatus {
  std::string key;
  std::string gpu_type;
  std::string cpu_class;
  std::string image;
  std::string revision;
  // Hash of the spec's caches, nodeSelector, gpuTypes and time limits: if it changes, `attempt`
  // starts from 1 again. Empty for builds by older operators.
  std::string settings_hash;
  std::string pod_uid;
  std::string pod_name;
  std::string job;  // name of the builder Job; empty if the builder is a pod of the workload
  std::string node;
  BuilderState state = BuilderState::kElected;
  int attempt = 1;
  // Number of bundles of the key that were suspended since attempt 1.
  int bundles_suspended = 0;
  double gpu_seconds = 0;  // of the builder Job; set when its build continues with the proof
  WallTime elected_time{};
  WallTime answered_time{};  // time of the last response to compile.requests; zero: none yet
  WallTime finished_time{};  // when the builder's pod was captured or the build failed; else zero
  std::string reason;
  std::string message;  // why the build failed, or why other pods of the group were not captured
  // If the builder belongs to a group of pods: uids of the pods of the group that were captured or
  // given up, the builder's own first; at most kRanksMax.
  std::vector<std::string> ranks;
  // Set from the capture of the builder's own pod until the bundle is published or refused.
  std::optional<CapturedBundle> captured;
  std::optional<ProofStatus> proof;  // set while the state is kProving
  friend bool operator==(const BuilderStatus&, const BuilderStatus&) = default;
};

inline constexpr size_t kHarvestedSetsMax = 16;

// The last harvest of one key: a capture of the units that running pods of one node compiled after
// they were Ready (WarmupSpec::harvest). It runs while finished_time is zero and started_time is
// not.
struct HarvestStatus {
  std::string key;
  int number = 0;  // of the harvest, from 1; 0: none has begun
  std::string node;
  std::string pod_uid;  // a running pod of the key on that node
  std::string run_as;
  std::string generation;  // the tree that is captured
  int units = 0;           // that the bundle lacked
  std::string set;         // Harvestable::set
  Digest base_digest;      // the bundle that is extended
  // The bundle of the key after the last harvest that ended. `harvested_sets` are about it.
  Digest digest;
  WallTime started_time{};
  WallTime finished_time{};
  std::string reason;
  std::string message;
  std::string refusal;  // why no harvest begins now; empty: it may
  // Sets that are not harvested again, newest last; at most kHarvestedSetsMax.
  std::vector<std::string> harvested_sets;
  friend bool operator==(const HarvestStatus&, const HarvestStatus&) = default;
};

// Returns the name of the Job that the build or its proof waits for; empty if there is none.
inline const std::string& CurrentJob(const BuilderStatus& builder) {
  return builder.proof ? builder.proof->job : builder.job;
}

}  // namespace cachewarm::api
