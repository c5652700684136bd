// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/condition.h"
#include "lib/api/node_cache.h"
#include "lib/fingerprint/fit.h"
#include "operator/plan/plan.h"
#include "operator/plan/scheduling/shape.h"
#include "operator/plan/snapshot.h"

// The state that the steps of one Decide() call share. A comment above a group of members names the
// step that writes them; later steps read them.
namespace cachewarm::plan {

// The part of a cache key that does not depend on the node: pods with equal factors have the same
// key on nodes of the same GPU type and CPU class.
struct PodFactors {
  std::string image;
  int devices = 0;
  std::string container;
  friend auto operator<=>(const PodFactors&, const PodFactors&) = default;
};

struct TemplateView {
  std::shared_ptr<const codec::Json> pod_template;  // null: unknown
  std::map<std::string, std::string> labels;
  PodFactors factors;    // container "" if the template has no container of the requested name
  std::string run_as;    // directory name for the container's user (render::RunAs)
  std::string revision;  // "t-" and a short hash of the template
  bool has_readiness_probe = false;
  bool may_end = false;  // the restart policy allows containers to complete (api::Pod::may_end)
  PodShape shape;
};

struct PodView {
  std::shared_ptr<const api::Pod> pod;
  bool injected = false;  // mounts this warmup's directory
  // The pod's annotation names another warmup. That warmup decides about the pod's gate.
  bool of_other_warmup = false;
  bool held = false;      // has cachewarm's gate
  bool of_job = false;    // belongs to a builder Job or to the Job of a proof
  bool of_proof = false;  // belongs to the Job of a proof
  bool finished = false;  // Succeeded or Failed
  // The pod exits when its work is done. Exit code 0 is then success, not a crash, and completes a
  // first start that is still in progress (see ReadyAt).
  bool runs_to_completion = false;
  std::string run_as;
  std::string revision;
  PodFactors factors;
  std::shared_ptr<const PodShape> shape;    // set for held pods only
  std::optional<api::StartResult> counted;  // result of its first start; unset: not counted yet
  const api::ContainerStatus* container = nullptr;  // null before kubelet reports it
  int node = -1;  // index into PlanContext::nodes; -1: not bound, or node unknown
};

struct NodeState {
  const NodeView* view = nullptr;
  // Null: there is none, or only one of a deleted Node of the same name.
  const api::NodeCache* cache = nullptr;
  const api::NodeWarmup* reported = nullptr;  // the agent's report about this warmup; null: none
  std::string_view hostname;                  // points into the node object
  // A pod of the workload could be scheduled here if the node were Ready, idle and not cordoned. Of
  // its taints, only the persistent ones count (Taints::kPersistent).
  bool possible = false;
  bool fits = false;      // selected by spec.gpuTypes and spec.nodeSelector
  bool ready = false;     // the node is Ready
  bool prepared = false;  // the directory for the template's run_as is usable
  bool hosts = false;     // a pod that mounts this warmup's directory is bound here
  std::string problem;    // reason why the directory is not usable, for users
  // An extended resource of the node whose devices the agent does not see (nodes/offer.h); empty:
  // there is none. Such a node has no target.
  std::string hidden_device;
  // Index into PlanContext::targets; -1: the node does not fit, or its GPU type or CPU class is
  // unknown.
  int target = -1;
  // Number of fetch-slot durations that this node must wait before it gets a fetch slot itself. Set
  // by DecideDistribution().
  int slots_before = 0;
};

// One GPU type and CPU class, with all nodes that have both and are selected by the warmup
// (NodeState::fits).
struct Target {
  std::string gpu_type;
  std::string cpu_class;
  std::vector<size_t> nodes;  // indices into PlanContext::nodes
};

// A key in use on the nodes of one Target: the key of pods made from the template, or of injected
// pods that have not ended.
struct LiveKey {
  std::string key;
  api::KeyFactors factors;
  size_t target = 0;
  bool current = false;  // key of the current template
};

// A held pod that is released to become the builder of a key.
struct BuilderCandidate {
  size_t pod = 0;     // index into PlanContext::pods
  size_t target = 0;  // index into PlanContext::targets; the pod prefers the nodes of that target
  // A prepared node of the target had capacity, which is reserved for this pod.
  bool has_capacity = false;
};

struct Acceptance {
  api::ConditionUpdate ready;
  bool inject = false;
  bool hard = false;  // keep this warmup's entries in NodeCaches unchanged and add none
};

struct PlanContext {
  explicit PlanContext(const Snapshot& snapshot) : in(snapshot) {}

  const Snapshot& in;
  Plan out;  // out.status starts as a copy of the warmup's

  // ReadWorkload
  TemplateView pod_template;
  std::vector<PodView> pods;
  std::vector<api::EnvVar> env;
  std::vector<api::EnvVar> strict_env;  // additional variables of a proof Job
  std::string spec_problem;
  // DecideNeverHeld: the reason why no pod of the workload is held, one of api::reason::kReleased…;
  // empty: pods may be held.
  std::string_view never_held;
  // FindTargets
  std::vector<NodeState> nodes;
  std::vector<Target> targets;
  std::vector<LiveKey> keys;
  // DecideAcceptance
  Acceptance acceptance;
  // DecideBuilders
  std::string build_settings;  // BuilderStatus::settings_hash of builds that start now
  std::vector<BuilderCandidate> builder_candidates;
  std::map<size_t, std::vector<api::CaptureRequest>> captures;  // by index of the node
  std::string job_refusal;    // reason why no builder Job is created, for users
  std::string store_refusal;  // an agent's message about a failed publish; empty: none failed
  // DecideStarts
  // By index of the node: the first starts that its agent must observe.
  std::map<size_t, std::vector<api::StartWindow>> windows;
  // Revisions with a pod whose start was a hit or whose cache was captured.
  std::set<std::string> proven_revisions;

  // By index of the node: capacity that is already reserved in this plan for unbound pods, whether
  // held or released, and for the pods of builder Jobs.
  std::map<size_t, Resources> reserved;
  // Cached results of BundleFor() by key: an index into out.status.bundles, or -1 for no bundle.
  // Cleared when a bundle is recorded or removed.
  mutable std::map<std::string, int, std::less<>> serving;

  // `now` in whole seconds. Kubernetes stores no fractions, and a time that is read back must
  // compare equal.
  WallTime stamp() const { return std::chrono::floor<std::chrono::seconds>(in.now); }
  bool deleting() const { return in.warmup.deleting; }
  bool paused() const { return in.warmup.spec.paused; }
  bool may_hold() const {
    return in.warmup.spec.gate.mode != api::GateMode::kNever && never_held.empty();
  }
  const std::string& uid() const { return in.warmup.uid; }
};

// Truncates `text` to 1024 bytes at a UTF-8 boundary; the schema rejects longer messages.
std::string TruncateMessage(std::string text);

// Requeues the warmup no later than `when`.
void RequeueAt(PlanContext& context, WallTime when);

// Adds an event about the warmup to the plan.
void RecordEvent(PlanContext& context, bool warning, std::string_view reason, std::string note);
EventRequest MakePodEvent(const api::Pod& pod, std::string_view reason, std::string note);

// Returns the published bundles in the form that lib/fingerprint takes, in the order of
// out.status.bundles.
std::vector<fingerprint::BundleFacts> BundlesOf(const PlanContext& context);
// Returns the bundle in out.status.bundles that serves `key`; nullptr if there is none.
const api::BundleStatus* BundleFor(const PlanContext& context, const LiveKey& key);
// Returns the entry of out.status.suspended_bundles with this digest; nullptr if there is none.
const api::SuspendedBundle* FindSuspended(const PlanContext& context, const Digest& digest);
// Returns the newest suspended bundle that served `key`; nullptr if there is none.
const api::SuspendedBundle* LastSuspendedFor(const PlanContext& context, const LiveKey& key);
// True if `key` has no bundle because its last one is suspended.
bool IsWithoutSuspendedBundle(const PlanContext& context, const LiveKey& key);
const LiveKey* FindKey(const PlanContext& context, int target, const PodFactors& factors);
const PodView* FindPod(const PlanContext& context, std::string_view uid);
// Returns the injected pods that have this key and whose container is running, earliest start
// first. Excludes pods of builder Jobs.
std::vector<const PodView*> RunningPods(const PlanContext& context, std::string_view key);
// True if the pod is bound to a node and has this key there.
bool HasKey(const PlanContext& context, const PodView& pod, std::string_view key);
// Sorts by the start time of the container, which every pod must have.
void SortByStart(std::vector<const PodView*>& pods);
api::BuilderStatus* FindBuilder(api::WarmupStatus& status, std::string_view key);
const api::BuilderStatus* FindBuilder(const api::WarmupStatus& status, std::string_view key);
bool IsRunning(const api::BuilderStatus& builder);
// True if the builder Jobs of this warmup build every bundle, and each bundle is proven before it
// is published (spec.compile.proof).
bool NeedsProof(const PlanContext& context);
// True if there is no bundle for the key and its builds failed more often in a row than
// spec.compile.backoffLimit allows.
bool IsExhausted(const PlanContext& context, const LiveKey& key);

// True if the agent of `node` reports the bundle as active.
bool IsActive(const NodeState& node, const Digest& digest);
const api::NodeBundle* ReportedBundle(const NodeState& node, const Digest& digest);
// True if the bundle that serves pods of `factors` on this node is active there.
bool IsWarm(const PlanContext& context, const NodeState& node, const PodFactors& factors);

// True if a pod of this shape could be bound to the node now: the node is Ready, the pod selects it
// and tolerates its taints (those that `taints` selects), and it has enough unreserved capacity.
bool Fits(const PlanContext& context, size_t node, const PodShape& shape,
          Taints taints = Taints::kAll);
void Reserve(PlanContext& context, size_t node, const PodShape& shape);

// Returns the host directory that pods of this warmup mount if their container runs as the user of
// `run_as` (render::RunAs).
std::string HostPath(const PlanContext& context, std::string_view run_as);

// True if the container has started at least once, with any outcome.
bool HasStarted(const PodView& pod);
// True if the pod runs to completion and its container exited with 0.
bool HasSucceeded(const PodView& pod);

// Returns how often the container has terminated. This may be one more than kubelet's restart
// count, which is increased only when the container starts again.
int TerminationCount(const api::ContainerStatus& container);

// Returns when the pod completed its first start; zero if it has not. The first start is complete
// when the pod becomes Ready or, without a readiness probe, 60 s after the container started. If a
// pod that runs to completion exits with 0 before that, its first start is complete then. If the
// workload is a Job or CronJob, the first start of its pods is complete only when they exit with 0.
WallTime ReadyAt(const PlanContext& context, const PodView& pod);
// True if the pod is or was Ready, or has exited with 0. Without a readiness probe, kubelet reports
// every running container as Ready, even one in a crash loop; such a pod counts as ready only 60 s
// after its container started.
bool WasReady(const PlanContext& context, const PodView& pod);
// For a pod without a readiness probe, requeues the warmup at the time at which the pod is assumed
// to be ready (see ReadyAt), because no object changes then.
void RequeueWhenReady(PlanContext& context, const PodView& pod);

}  // namespace cachewarm::plan
