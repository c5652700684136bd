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

// What the decisions of one Decide() know and have decided so far. Lives only inside Decide(); each
// member is written by the one decision named at it and read by those after it.
namespace cachewarm::plan {

// What a key has beside its node: equal factors on nodes of one target give one key.
struct PodFactors {
  std::string image;
  int devices = 0;
  std::string container;
  friend auto operator<=>(const PodFactors&, const PodFactors&) = default;
};

struct TemplateView {
  std::shared_ptr<const codec::Json> pod_template;  // null: not known
  std::map<std::string, std::string> labels;
  PodFactors factors;  // container "" when the template has none of the wanted name
  std::string run_as;
  std::string revision;  // "t-" and a short hash: what a builder Job is made from
  bool has_readiness_probe = false;
  bool may_end = false;  // as api::Pod::may_end of its pods
  PodShape shape;
};

struct PodView {
  std::shared_ptr<const api::Pod> pod;
  bool injected = false;  // mounts this warmup's directory
  bool of_other_warmup =
      false;              // another warmup's name is on it: its gate and start are that one's
  bool held = false;      // has our gate
  bool of_job = false;    // of a builder Job
  bool finished = false;  // Succeeded or Failed
  // It runs to an end: that it has exited with 0 is no crash, and makes it ready at the latest.
  bool runs_to_completion = false;
  std::string run_as;
  std::string revision;
  PodFactors factors;
  std::shared_ptr<const PodShape> shape;            // of held pods only
  std::optional<api::StartResult> counted;          // how its first start went, once that is known
  const api::ContainerStatus* container = nullptr;  // null before kubelet reports it
  int node = -1;  // in PlanContext::nodes; -1: not bound, or unknown
};

struct NodeState {
  const NodeView* view = nullptr;
  const api::NodeCache* cache = nullptr;      // null: none, or of a node that is gone
  const api::NodeWarmup* reported = nullptr;  // what the agent says about this warmup
  std::string_view hostname;                  // of the node
  bool possible = false;                      // a pod of the workload could land here
  bool fits = false;      // ... and spec.gpuTypes and spec.nodeSelector want it warm
  bool ready = false;     // the node
  bool prepared = false;  // the template's run-as has a usable directory
  bool hosts = false;     // a pod that mounts our directory is bound here
  std::string problem;    // why the directory cannot be prepared, in the agent's words
  int target = -1;        // in PlanContext::targets; -1: does not fit, or its facts are not known
  // DecideDistribution: whole turns to fetch that others have before this node's own begins.
  int slots_before = 0;
};

// The fitting nodes of one (GPU type, CPU class).
struct Target {
  std::string gpu_type;
  std::string cpu_class;
  std::vector<size_t> nodes;  // in PlanContext::nodes
};

struct LiveKey {
  std::string key;
  api::KeyFactors factors;
  size_t target = 0;
  bool current = false;  // of the template as it is now
};

// A held pod that is released to become the builder of a key.
struct BuilderCandidate {
  size_t pod = 0;     // in PlanContext::pods
  size_t target = 0;  // whose nodes it should prefer
  // One of them that has its directory had room for it, and keeps it.
  bool has_capacity = false;
};

struct Acceptance {
  api::ConditionUpdate ready;
  bool inject = false;
  bool hard = false;  // what is there stays as it is; nothing new
};

struct PlanContext {
  explicit PlanContext(const Snapshot& snapshot) : in(snapshot) {}

  const Snapshot& in;
  Plan out;  // out.status starts as a copy of the warmup's

  // ReadWorkload
  TemplateView pod_template;
  std::vector<PodView> pods;
  std::vector<api::EnvVar> env;
  std::string spec_problem;
  // DecideNeverHeld: why no pod of the workload is ever held, one of api::reason::kReleased…;
  // empty: they may be.
  std::string_view never_held;
  // FindTargets
  std::vector<NodeState> nodes;
  std::vector<Target> targets;
  std::vector<LiveKey> keys;
  // DecideAcceptance
  Acceptance acceptance;
  // DecideBuilders
  std::string build_settings;  // what api::BuilderStatus::settings is for a build of now
  std::vector<BuilderCandidate> builder_candidates;
  std::map<size_t, std::vector<api::CaptureRequest>> captures;  // by node
  std::string job_refusal;                                      // why no Job is made
  std::string store_refusal;                                    // what the store said to a publish
  // DecideStarts
  std::map<size_t, std::vector<api::StartWindow>> windows;  // by node
  std::set<std::string> proven_revisions;

  // Room that pods released in this round, or not bound yet, will take; by node.
  std::map<size_t, Resources> reserved;
  // BundleFor's answers by key, an index or -1; forgotten when a bundle is recorded.
  mutable std::map<std::string, int, std::less<>> serving;

  // `now` as it is written: Kubernetes keeps whole seconds, and what is read back must be equal.
  WallTime stamp() const { return std::chrono::floor<std::chrono::seconds>(in.now); }
  bool deleting() const { return in.warmup.deleting; }
  bool paused() const { return in.warmup.spec.paused; }
  bool may_hold() const {
    return in.warmup.spec.gate.mode != api::GateMode::kNever && never_held.empty();
  }
  const std::string& uid() const { return in.warmup.uid; }
};

// The schema allows 1024 bytes in a message, and one that is longer would be refused for ever.
std::string TruncateMessage(std::string text);

// Asks for another round at `when`, at the latest.
void RequeueAt(PlanContext& context, WallTime when);

// An event about the warmup.
void RecordEvent(PlanContext& context, bool warning, std::string_view reason, std::string note);
EventRequest MakePodEvent(const api::Pod& pod, std::string_view reason, std::string note);

// The published bundles as lib/fingerprint judges them, in the order of out.status.bundles.
std::vector<fingerprint::BundleFacts> BundlesOf(const PlanContext& context);
// The bundle that serves `key`, in out.status.bundles; nullptr when there is none.
const api::BundleStatus* BundleFor(const PlanContext& context, const LiveKey& key);
const LiveKey* FindKey(const PlanContext& context, int target, const PodFactors& factors);
const PodView* FindPod(const PlanContext& context, std::string_view uid);
// Injected pods of the workload itself whose container runs on a node of the key, the first to
// start first.
std::vector<const PodView*> RunningPods(const PlanContext& context, std::string_view key);
// The pod is on a node where its key is `key`.
bool HasKey(const PlanContext& context, const PodView& pod, std::string_view key);
// By when their containers started; each has one that did.
void SortByStart(std::vector<const PodView*>& pods);
api::BuilderStatus* FindBuilder(api::WarmupStatus& status, std::string_view key);
const api::BuilderStatus* FindBuilder(const api::WarmupStatus& status, std::string_view key);
bool IsRunning(const api::BuilderStatus& builder);
// As many builds of the key failed one after the other as spec.compile.backoffLimit allows.
bool IsExhausted(const PlanContext& context, const LiveKey& key);

// The agent of `node` reports the bundle as active.
bool IsActive(const NodeState& node, const Digest& digest);
const api::NodeBundle* ReportedBundle(const NodeState& node, const Digest& digest);
// The bundle that serves the pods of `factors` on this node is there and active.
bool IsWarm(const PlanContext& context, const NodeState& node, const PodFactors& factors);

// A held pod could be bound to this node now: Ready, schedulable for it, and with room left.
bool Fits(const PlanContext& context, size_t node, const PodShape& shape,
          Taints taints = Taints::kAll);
void Reserve(PlanContext& context, size_t node, const PodShape& shape);

// The directory of a run-as on the host, as pods of this warmup mount it.
std::string HostPath(const PlanContext& context, std::string_view run_as);

// The container has run, however it went.
bool HasStarted(const PodView& pod);
// The container of a pod that ends by itself has ended with 0.
bool HasSucceeded(const PodView& pod);

// How often the container has ended. kubelet counts a restart only when it has begun.
int TerminationCount(const api::ContainerStatus& container);

// When the pod's first start ended: Ready; without a readiness probe 60 s after the container's
// start; of a pod that ends by itself its exit with 0. Zero while it has not ended.
WallTime ReadyAt(const PlanContext& context, const PodView& pod);
// It was Ready, now or before, or has ended with 0. Without a readiness probe kubelet says Ready of
// whatever runs, also of what is started again and again: there it takes the same 60 s.
bool WasReady(const PlanContext& context, const PodView& pod);
// Looks again when the clock alone ends the first start, as no change of an object will tell.
void RequeueWhenReady(PlanContext& context, const PodView& pod);

}  // namespace cachewarm::plan
