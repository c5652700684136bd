// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "operator/plan/scheduling/pod_shape.h"
#include "operator/plan/values.h"

// The warmup, its pods and the nodes, as every stage of one plan reads them. Pure.
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
  // Image and device count as admission leaves them (see `admitted`); container "" if the template
  // has no container of the requested name.
  PodFactors factors;
  // status.admitted: how admission changes the container in pods of this template. While that is
  // unknown, the value for an earlier template.
  std::optional<api::AdmittedContainer> admitted;
  // Admission changed the container in pods of an earlier template, and no dry run of this template
  // was answered yet. `factors` are then those of the template's text.
  bool admission_unknown = false;
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
  int node = -1;  // index into Context::nodes; -1: not bound, or node unknown
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
  // Index into Context::targets; -1: the node does not fit, or its GPU type or CPU class is
  // unknown.
  int target = -1;
};

// One GPU type and CPU class, with all nodes that have both and are selected by the warmup
// (NodeState::fits).
struct Target {
  std::string gpu_type;
  std::string cpu_class;
  std::vector<size_t> nodes;  // indices into Context::nodes
};

// A key in use on the nodes of one Target: the key of pods made from the template, or of injected
// pods that have not ended.
struct LiveKey {
  std::string key;
  api::KeyFactors factors;
  size_t target = 0;
  bool current = false;  // key of the current template
};

// Result of ReadWorkload().
struct WorkloadView {
  TemplateView pod_template;
  std::vector<api::EnvVar> env;
  std::vector<api::EnvVar> strict_env;  // additional variables of a proof Job
  std::string spec_problem;             // why spec.caches or spec.compile.proof is invalid
};

struct WorkloadRule;

// Result of DecideHoldPolicy().
struct HoldPolicy {
  // The rule by which no pod of the workload is held (gates/hold_policy.h); null: pods may be held.
  const WorkloadRule* never_held = nullptr;
  int64_t min_available = 0;  // status.minAvailable
};

// Result of FindTargets().
struct ClusterView {
  std::vector<PodView> pods;
  std::vector<NodeState> nodes;
  std::vector<Target> targets;
  std::vector<LiveKey> keys;
};

// The results of the first stages. Points into the Snapshot.
struct Observed {
  WorkloadView workload;
  HoldPolicy hold;
  ClusterView cluster;
};
Observed Observe(const Snapshot& snapshot);

// The inputs of every later stage, all const. Both arguments must outlive it.
struct Context {
  Context(const Snapshot& snapshot, const Observed& observed)
      : in(snapshot),
        workload(observed.workload),
        hold(observed.hold),
        pod_template(observed.workload.pod_template),
        pods(observed.cluster.pods),
        nodes(observed.cluster.nodes),
        targets(observed.cluster.targets),
        keys(observed.cluster.keys) {}

  const Snapshot& in;
  const WorkloadView& workload;
  const HoldPolicy& hold;
  const TemplateView& pod_template;
  const std::vector<PodView>& pods;
  const std::vector<NodeState>& nodes;
  const std::vector<Target>& targets;
  const std::vector<LiveKey>& keys;

  // `now` in whole seconds. Kubernetes stores no fractions, and a time that is read back must
  // compare equal.
  WallTime stamp() const { return std::chrono::floor<std::chrono::seconds>(in.now); }
  bool deleting() const { return in.warmup.deleting; }
  bool paused() const { return in.warmup.spec.paused; }
  bool may_hold() const {
    return in.warmup.spec.gate.mode != api::GateMode::kNever && hold.never_held == nullptr;
  }
  // True if the API server recently rejected the release of a held pod in this namespace. A pod
  // that is held now might be held for ever.
  bool releases_rejected() const {
    return in.release_refusal.time != WallTime{} &&
           in.now < in.release_refusal.time + kReleaseRefusalLasts;
  }
  const std::string& uid() const { return in.warmup.uid; }
};

// Capacity that is already reserved in this plan, by index of the node: for unbound pods, whether
// held or released, and for the pods of builder Jobs.
using Reserved = std::map<size_t, Resources>;

// Truncates `text` to 1024 bytes at a UTF-8 boundary; the schema rejects longer messages.
std::string TruncateMessage(std::string text);

const LiveKey* FindKey(const Context& context, int target, const PodFactors& factors);
const PodView* FindPod(const Context& context, std::string_view uid);
// Returns the injected pods that have this key and whose container is running, earliest start
// first. Excludes pods of builder Jobs.
std::vector<const PodView*> RunningPods(const Context& context, std::string_view key);
// True if the pod is bound to a node and has this key there.
bool HasKey(const Context& context, const PodView& pod, std::string_view key);
// Sorts by the start time of the container, which every pod must have.
void SortByStart(std::vector<const PodView*>& pods);
api::BuilderStatus* FindBuilder(std::vector<api::BuilderStatus>& builders, std::string_view key);
const api::BuilderStatus* FindBuilder(const std::vector<api::BuilderStatus>& builders,
                                      std::string_view key);
bool IsRunning(const api::BuilderStatus& builder);
// True if the builder Jobs of this warmup build every bundle, and each bundle is proven before it
// is published (spec.compile.proof).
bool NeedsProof(const api::WarmupSpec& spec);

// True if the agent of `node` reports the bundle as active.
bool IsActive(const NodeState& node, const Digest& digest);
const api::NodeBundle* ReportedBundle(const NodeState& node, const Digest& digest);
// Returns the agent's report about the bundle or, if it is not active on the node, about an active
// bundle that it extends (BundleStatus::extends). Null if the agent reports none of them.
const api::NodeBundle* ServingBundle(const NodeState& node, const api::BundleStatus& bundle);
// True if the bundle, or one that it extends, is active on the node.
bool IsServed(const NodeState& node, const api::BundleStatus& bundle);
// True if a pod of this shape could be bound to the node now: the node is Ready, the pod selects it
// and tolerates its taints, and it has enough unreserved capacity.
bool Fits(const Context& context, const Reserved& reserved, size_t node, const PodShape& shape);
void Reserve(Reserved& reserved, size_t node, const PodShape& shape);

// Returns the host directory that pods of this warmup mount if their container runs as the user of
// `run_as` (render::RunAs).
std::string HostPath(const Context& context, std::string_view run_as);

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
WallTime ReadyAt(const Context& context, const PodView& pod);
// True if the pod is or was Ready, or has exited with 0. Without a readiness probe, kubelet reports
// every running container as Ready, even one in a crash loop; such a pod counts as ready only 60 s
// after its container started.
bool WasReady(const Context& context, const PodView& pod);
// Returns when a pod without a readiness probe will count as ready (see ReadyAt): no object changes
// then. Returns nullopt if that time has passed, or if the pod does not run or has a probe.
std::optional<WallTime> ReadyLaterAt(const Context& context, const PodView& pod);

}  // namespace cachewarm::plan
