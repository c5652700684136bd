// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/condition.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/json_fwd.h"

// The NodeCache resource: one per node, with the node's name. The operator writes spec, the agent
// of that node writes status. Plain values, no I/O.
namespace cachewarm::api {

struct WantedBundle {
  std::string key;
  Digest digest;
  int64_t bytes = 0;
  friend bool operator==(const WantedBundle&, const WantedBundle&) = default;
};

inline constexpr int kFetchPriorityNone = 0;
inline constexpr int kFetchPriorityBound = 1;  // a pod bound to the node has not started yet
inline constexpr int kFetchPriorityMax = 10;

// Entries that running pods of a warmup compiled on a node after they were Ready. The agent reports
// them once; the next report follows after WantedWarmup::late_counted has the number of this one.
struct LateCompiles {
  int64_t report = 0;  // larger than that of every earlier report of the node; 0: no report
  int entries = 0;     // at most 1,000,000
  // The entries were compiled between these times.
  WallTime first_time{};
  WallTime last_time{};
  friend bool operator==(const LateCompiles&, const LateCompiles&) = default;
};

// Complete units (caches::Placement::unit) that running pods of a warmup compiled on a node after
// they were Ready, in one tree.
struct Harvestable {
  std::string generation;  // name of the tree; empty: nothing can be harvested
  std::string run_as;
  int units = 0;        // units that the bundles of the active tree lack
  std::string set;      // hash of all units that were compiled late in the tree
  std::string message;  // why the tree cannot be harvested; empty: it can
  friend bool operator==(const Harvestable&, const Harvestable&) = default;
};

// One warmup whose pods may run on this node: directories to prepare and bundles to activate. When
// the entry is removed, files that are on the node stay there.
struct WantedWarmup {
  std::string uid;
  std::string ns;
  std::string name;
  std::vector<std::string> run_as;    // run-as names of its pods ("u1000", "image"); at most 8
  std::vector<CacheChoice> caches;    // caches to capture; empty: every preset that is not opt-in
  std::vector<WantedBundle> bundles;  // bundles of keys in use that fit the node; at most 16
  // Number of crashes of containers that were not ready yet. The number is part of the tree's id
  // (its generation), so that the agent builds a fresh tree from the bundles after each crash.
  int renew = 0;
  // The crashes that `renew` already counts, so that none is counted twice: "<podUID>:<restarts>",
  // newest last; at most 16.
  std::vector<std::string> renewed_for;
  // The agent fetches for the highest priority first.
  int fetch_priority = 0;
  // When the node last got a slot to fetch bundles of this warmup. Zero: it never got one.
  WallTime fetch_granted_time{};
  // spec.retain of the CacheWarmup: trees with bundles that are kept beside the active one.
  int retain = kRetainDefault;
  int64_t late_counted = 0;  // LateCompiles::report that was counted last; 0: none
  bool harvest = false;      // report NodeWarmup::harvestable
  friend bool operator==(const WantedWarmup&, const WantedWarmup&) = default;
};

// The inputs of a key's hash (lib/fingerprint); stored in the bundle's config.
struct KeyFactors {
  std::string gpu_type;
  std::string cpu_class;
  std::string image;
  int devices = 0;
  std::string container;
  friend bool operator==(const KeyFactors&, const KeyFactors&) = default;
};

// One capture that the operator requests. `id` is "<podUID>": one capture per builder pod.
struct CaptureRequest {
  std::string id;
  std::string warmup_uid;
  std::string pod_uid;
  std::string run_as;
  std::string key;
  KeyFactors factors;
  int settle_seconds = 10;
  WallTime started_time{};  // start of the builder's container
  WallTime ready_time{};    // zero until the builder is ready
  // A bundle of the same key: the agent publishes its files together with the captured ones. Empty:
  // the agent publishes only the captured files. Agents that do not report
  // NodeStatus::extends_bundles ignore this field.
  Digest base_digest;
  // The builder's pod runs one model together with other pods: autotune results stay out of the
  // bundle (docs/design/0028-autotune-results-of-one-generation.md).
  bool grouped = false;
  // Not empty: a harvest. The agent captures the units of this tree that were compiled after Ready,
  // and adds them to `base_digest`. Agents that do not report NodeWarmup::harvestable get no such
  // request.
  std::string generation;
  friend bool operator==(const CaptureRequest&, const CaptureRequest&) = default;
};

// Time window of a pod's first start. The agent attributes the file events in this window to the
// pod.
struct StartWindow {
  std::string pod_uid;
  std::string warmup_uid;
  std::string run_as;
  WallTime started_time{};
  WallTime ready_time{};  // zero until Ready
  friend bool operator==(const StartWindow&, const StartWindow&) = default;
};

// Devices of one extended resource that kubelet offers (status.allocatable of the Node).
struct OfferedDevices {
  std::string resource;  // "nvidia.com/gpu"
  int count = 0;
  friend bool operator==(const OfferedDevices&, const OfferedDevices&) = default;
};

struct NodeLabel {
  std::string name;
  std::string value;
  friend bool operator==(const NodeLabel&, const NodeLabel&) = default;
};

// Devices of one kind in the ResourceSlices of the node (Dynamic Resource Allocation).
struct PublishedDevices {
  std::string driver;              // "gpu.nvidia.com"
  std::string product;             // "NVIDIA H100 80GB HBM3"; with MIG: the whole GPU
  std::string compute_capability;  // "9.0.0"; empty if the driver does not state it
  int count = 0;
  friend bool operator==(const PublishedDevices&, const PublishedDevices&) = default;
};

// The accelerators of the node according to its Node object and its ResourceSlices. The agent,
// which may read neither, compares them with its driver. The field manager is kOperatorManager.
struct NodeOffer {
  std::vector<OfferedDevices> devices;      // sorted by resource, at most 16
  std::vector<NodeLabel> labels;            // of GPU feature discovery; sorted by name, at most 16
  std::vector<PublishedDevices> published;  // each kind once, sorted, at most 16
  friend bool operator==(const NodeOffer&, const NodeOffer&) = default;
};

// A tree of a node that the agent can remove. The agent lists it in status.evictable; the operator
// copies the entry to spec.evict once no pod can have the tree mounted.
struct EvictableTree {
  std::string generation;  // name of the tree
  std::string warmup_uid;  // empty: unknown, so pods of every warmup may have mounted the tree
  // When the link of the tree's mount was switched to another tree, rounded up to seconds. Zero:
  // the link still leads to the tree, and is removed with it when the warmup no longer exists.
  WallTime unlinked_time{};
  friend bool operator==(const EvictableTree&, const EvictableTree&) = default;
};

// A container that started this long after a link was switched has mounted the new tree. kubelet
// resolves the mount of a container at most this long before the start time that it reports.
inline constexpr Duration kMountedBefore{30'000};

struct NodeCacheSpec {
  NodeOffer node;
  std::vector<EvictableTree> evict;      // sorted by generation, at most 128
  std::vector<WantedWarmup> warmups;     // sorted by uid, at most 64
  std::vector<CaptureRequest> captures;  // sorted by id, at most 16
  std::vector<StartWindow> starts;       // sorted by podUID, at most 64
};

struct RootStatus {
  std::string path;
  bool writable = false;
  bool executable = false;
  int64_t used_bytes = 0;
  int64_t limit_bytes = 0;  // 0: no limit
  int64_t free_bytes = 0;
  int64_t evictable_bytes = 0;  // bytes of the trees in NodeCacheStatus::evictable
  int64_t evicted_bytes = 0;    // bytes of the trees that were evicted since the agent started
  std::string message;          // why the root cannot be used
  friend bool operator==(const RootStatus&, const RootStatus&) = default;
};

struct NodeStatus {
  std::string gpu_type;  // empty: not known yet, or several types (see the conditions)
  std::string cpu_class;
  int devices = 0;
  std::string driver;  // version of the GPU driver; empty on a node without GPU
  std::string agent_version;
  bool extends_bundles = false;  // the agent supports CaptureRequest::base_digest
  RootStatus root;
  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

enum class BundleState { kWaiting, kFetching, kActive, kFailed };

struct NodeBundle {
  Digest digest;
  BundleState state = BundleState::kWaiting;
  int64_t bytes_done = 0;
  // Seconds from the start of the fetch to the complete tree; while the fetch runs, to the arrival
  // of bytes_done.
  double fetch_seconds = 0;
  std::string reason;
  std::string message;
  friend bool operator==(const NodeBundle&, const NodeBundle&) = default;
};

struct NodeWarmup {
  std::string uid;
  std::vector<std::string> prepared;  // run-as names whose directory is usable
  std::string generation;             // id of the active tree of the first run-as name
  // The wanted bundles, and the other ones of the active trees.
  std::vector<NodeBundle> bundles;
  LateCompiles late_compiles;  // the report that is not counted yet
  Harvestable harvestable;     // of the tree with the most units; only if requested
  std::string message;         // why a directory could not be prepared
  friend bool operator==(const NodeWarmup&, const NodeWarmup&) = default;
};

enum class CaptureState { kWaiting, kPacking, kPushed, kFailed };

// Files of a captured tree that match no file pattern of any cache kind. They are not captured.
struct LeftBehind {
  int64_t files = 0;
  int64_t bytes = 0;
  std::vector<std::string> directories;  // at most 8, those with the most bytes first
  friend bool operator==(const LeftBehind&, const LeftBehind&) = default;
};

struct CaptureStatus {
  std::string id;
  CaptureState state = CaptureState::kWaiting;
  Digest digest;
  int64_t bytes = 0;
  int files = 0;
  bool native = true;
  double compile_seconds = 0;
  LeftBehind left_behind;
  std::string reason;
  std::string message;
  friend bool operator==(const CaptureStatus&, const CaptureStatus&) = default;
};

struct StartEvidence {
  std::string pod_uid;
  StartResult result = StartResult::kUnknown;
  int opened = 0;
  int written = 0;
  int native_built = 0;
  double compile_seconds = 0;
  // From the start of the container to the last compiled file; 0: no file was compiled.
  double compiled_after_seconds = 0;
  // Names of the parts of the engine's cache key that differ from those of the builder, variables
  // ("env.VLLM_USE_V1") first; at most 8. Empty: none is known to differ.
  std::vector<std::string> differing_key_factors;
  friend bool operator==(const StartEvidence&, const StartEvidence&) = default;
};

struct NodeCacheStatus {
  NodeStatus node;
  std::vector<Condition> conditions;  // types: api::kGpu... in names.h
  WallTime heartbeat{};
  std::vector<NodeWarmup> warmups;       // sorted by uid
  std::vector<CaptureStatus> captures;   // sorted by id
  std::vector<StartEvidence> starts;     // sorted by podUID
  std::vector<EvictableTree> evictable;  // next to evict first, at most 128
  friend bool operator==(const NodeCacheStatus&, const NodeCacheStatus&) = default;
};

struct NodeCache {
  std::string name;
  std::string uid;
  std::string node_uid;  // uid of the Node that owns this object
  NodeCacheSpec spec;
  NodeCacheStatus status;
};

absl::StatusOr<NodeCache> DecodeNodeCache(const codec::Json& object);
codec::Json EncodeSpec(const NodeCacheSpec& spec);
codec::Json EncodeStatus(const NodeCacheStatus& status);

std::string_view Name(BundleState value);
std::string_view Name(CaptureState value);

}  // namespace cachewarm::api
