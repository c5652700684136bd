// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/bundle_status.h"
#include "lib/api/condition.h"
#include "lib/api/kubernetes.h"
#include "lib/api/starts.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// The CacheWarmup resource, with the same fields as crds/cachewarmups.yaml (tests/unit/lib/api
// compares them). Plain values, no I/O. Decoding rejects objects that the CRD's schema rejects.
namespace cachewarm::api {

struct WorkloadRef {
  std::string api_version;
  std::string kind;
  std::string name;
  friend bool operator==(const WorkloadRef&, const WorkloadRef&) = default;
};

// One entry of spec.caches: a preset by name, or a custom cache.
struct CacheChoice {
  std::string name;
  std::string env;                   // custom: environment variable that holds the path
  std::string path;                  // custom: directory below the mount path
  std::vector<std::string> include;  // custom: globs of files below path; empty: all
  friend bool operator==(const CacheChoice&, const CacheChoice&) = default;
};

enum class Builder { kAuto, kFirstPod, kJob };

// Engine: before the bundle of a builder Job is published to all nodes, a second Job starts with it
// while its engine must not compile (lib/caches/kind.h, CacheKind::strict).
enum class Proof { kNone, kEngine };

struct HttpHeader {
  std::string name;
  std::string value;
  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

// One HTTP request to the pod of a builder Job, sent when the containers of the pod are ready.
struct BuildRequest {
  std::string method = "GET";
  std::string path;
  int port = 0;
  std::vector<HttpHeader> headers;
  std::string body;
  int expect_status = 0;  // 0: any 2xx
  int repeat = 1;
  int timeout_seconds = 600;
  friend bool operator==(const BuildRequest&, const BuildRequest&) = default;
};

struct EnvVar {
  std::string name;
  std::string value;
  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

// Requests and limits of one container, as the user wrote the quantities ("500m").
struct ContainerResources {
  std::string container;
  std::map<std::string, std::string> requests;
  std::map<std::string, std::string> limits;
  friend bool operator==(const ContainerResources&, const ContainerResources&) = default;
};

// Changes to the pod template that only the pod of a builder Job gets. The list is closed: it has
// no field that gives the pod more rights than the template has
// (operator/plan/builders/override_rights.h).
struct Overrides {
  std::vector<std::string> command;  // of the container that compiles; also removes its args
  std::vector<std::string> args;     // of the container that compiles
  std::vector<EnvVar> env;           // of the container that compiles
  std::vector<Toleration> tolerations;
  std::map<std::string, std::string> node_selector;
  std::vector<ContainerResources> resources;  // of other containers
  friend bool operator==(const Overrides&, const Overrides&) = default;
};

// Settings of builds. timeout_seconds counts from the start of the builder's container.
struct CompileSpec {
  Builder builder = Builder::kAuto;
  Proof proof = Proof::kNone;
  int timeout_seconds = 1800;
  int pending_seconds = 600;  // how long a builder may wait for a node
  int settle_seconds = 10;
  int backoff_limit = 3;
  std::optional<Overrides> overrides;
  std::vector<BuildRequest> requests;
  friend bool operator==(const CompileSpec&, const CompileSpec&) = default;
};

// Auto: holds pods while the expected wait is shorter than the time that a warm start saves. Hold:
// holds pods until a node is warm. Never: holds no pod.
enum class GateMode { kAuto, kHold, kNever };

struct GateSpec {
  GateMode mode = GateMode::kAuto;
  int max_hold_seconds = 60;
  friend bool operator==(const GateSpec&, const GateSpec&) = default;
};

// Default and limit of spec.retain.
inline constexpr int kRetainDefault = 1;
inline constexpr int kRetainMax = 16;

struct WarmupSpec {
  std::optional<WorkloadRef> workload_ref;
  // A PodTemplateSpec as the user wrote it; null when absent.
  std::shared_ptr<const codec::Json> pod_template;
  std::map<std::string, std::string> selector;  // as in matchLabels
  std::string container;                        // empty: the operator chooses one
  std::vector<CacheChoice> caches;              // empty: every preset that is not opt-in
  std::vector<std::string> gpu_types;           // empty: every type
  std::map<std::string, std::string> node_selector;
  CompileSpec compile;
  GateSpec gate;
  // A start with a bundle counts as hung once it has taken longer than three times the median cold
  // start, and longer than that median plus this many seconds.
  int hang_seconds = 300;
  int retain = kRetainDefault;  // trees with bundles that a node keeps beside the active one
  // Publish what running pods compile after they are Ready as a larger bundle for all nodes.
  bool harvest = false;
  bool paused = false;
};

// Input of the admission policy. It has no paths: the policy computes the path that a pod mounts,
// so that nobody can choose a path by writing a status.
struct Injection {
  std::map<std::string, std::string> labels;
  std::string container;
  std::vector<EnvVar> env;
  bool gate = false;
  // spec.nodeSelector of the pod template whose nodes were evaluated. Pods that may run on other
  // nodes, because they lack one of these entries, are not injected.
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> warm_revisions;  // revisions whose pods are not held; at most 16
  friend bool operator==(const Injection&, const Injection&) = default;
};

// Identifies one boot of one Node object: recreating or rebooting the node changes the value.
struct NodeIdentity {
  std::string name;
  std::string uid;
  std::string boot_id;  // api::Node::boot_id
  friend bool operator==(const NodeIdentity&, const NodeIdentity&) = default;
};

inline constexpr size_t kSuspensionNodesMax = 16;

// Record of a suspension: injection is stopped because pods failed with the cache. The record
// outlives these pods, so that the next pod does not fail in the same way.
struct Suspension {
  std::string reason;  // reason of the condition Ready
  std::string message;
  WallTime suspended_time{};
  // State at the failure. Injection resumes when a hash or the generation changes, or when every
  // one of `nodes` has changed.
  std::string template_hash;
  std::string policy_hash;  // hash of the injected content and the namespace's labels
  int64_t generation = 0;
  std::vector<NodeIdentity> nodes;  // nodes of the failed pods; at most kSuspensionNodesMax
  std::string revision;             // revision of the pods that failed
  // When injection resumed; zero: still suspended. Failures of pods created before that time do not
  // suspend injection again.
  WallTime resumed_time{};
  friend bool operator==(const Suspension&, const Suspension&) = default;
};

// Image and device count that admission gives spec.container in pods of the workload's template.
// They differ from the template if a mutating policy or webhook rewrites the image (a mirror, a
// digest) or adds a device. Cache keys use these values, because pods run with them.
struct AdmittedContainer {
  std::string revision;  // hash of the template that the API server answered about
  std::string image;
  int devices = 0;
  friend bool operator==(const AdmittedContainer&, const AdmittedContainer&) = default;
};

// Strings for the printer columns.
struct Summary {
  std::string types;    // "1/2": of 2 GPU types in use, 1 is warm on all its nodes
  std::string nodes;    // "3/12": of 12 nodes that need a bundle, 3 have it active
  std::string hit;      // share of hits: "97%"; empty until a start has been counted
  std::string partial;  // share of partial hits, in the same way
  std::string saved;    // net start time saved: "3h41m"
  friend bool operator==(const Summary&, const Summary&) = default;
};

struct WarmupStatus {
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  // Number of available pods that the rollout strategy and disruption budgets require; at most the
  // largest number that has been available at once. While fewer are available, no pod is held.
  int64_t min_available = 0;
  std::optional<Injection> injection;
  std::optional<Suspension> suspension;
  std::optional<AdmittedContainer> admitted;  // unset: admission leaves image and devices unchanged
  std::vector<BundleStatus> bundles;          // sorted by key; at most 64
  std::vector<SuspendedBundle> suspended_bundles;  // newest last; at most kSuspendedBundlesMax
  std::vector<BuilderStatus> builders;             // sorted by key; at most 64
  std::vector<HarvestStatus> harvests;             // sorted by key; at most 64
  Starts starts;
  Summary summary;
  friend bool operator==(const WarmupStatus&, const WarmupStatus&) = default;
};

struct CacheWarmup {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  bool deleting = false;
  WarmupSpec spec;
  WarmupStatus status;
};

// Decodes an object. INVALID_ARGUMENT names the first wrong field by its full path.
absl::StatusOr<CacheWarmup> DecodeCacheWarmup(const codec::Json& object);
codec::Json EncodeSpec(const WarmupSpec& spec);
codec::Json EncodeStatus(const WarmupStatus& status);

std::string_view Name(Builder value);
std::string_view Name(Proof value);
std::string_view Name(GateMode value);
std::string_view Name(BuilderState value);
std::string_view Name(StartResult value);  // "hit", as in metric labels

}  // namespace cachewarm::api
