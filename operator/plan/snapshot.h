// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// What operator/observe hands to Decide(): everything about one warmup at one moment. Values only;
// nothing in it changes once it is made. (`operator` is a keyword: the namespace of this room is
// cachewarm::plan.)
namespace cachewarm::plan {

using api::Resources;

enum class WorkloadKind {
  kDeployment,  // and what scales like one: an Argo Rollout
  kStatefulSet,
  kJob,
  kCronJob,
  kGroup,  // pods that work only together: a LeaderWorkerSet, a RayCluster
  kTemplate,
  kSelector,
};

// All its pods run to an end.
constexpr bool RunsToCompletion(WorkloadKind kind) {
  return kind == WorkloadKind::kJob || kind == WorkloadKind::kCronJob;
}

struct Workload {
  WorkloadKind kind = WorkloadKind::kDeployment;
  bool found = false;
  std::string problem;  // when not found: what was looked for, for people
  std::string name;     // "" for kTemplate and kSelector
  std::string uid;
  // spec.selector.matchLabels of the workload (for kTemplate and kSelector: of the warmup). Empty
  // when it selects by expressions only.
  std::map<std::string, std::string> selector;
  int64_t replicas = 1;  // spec.replicas, 1 where the API defaults it; 0 for kTemplate
  // The PodTemplateSpec {metadata, spec}. Null when not found and for kSelector, whose template
  // Decide() learns from the newest pod.
  std::shared_ptr<const codec::Json> pod_template;
};

// What the API server said to a dry-run create.
enum class DryRunResult { kUnknown, kAllowed, kRefused };

// The last rehearsal of the pod. `fingerprint` is that of the Plan's DryRunRequest it answers.
// Quota, rate limits, webhooks without dry run and our own transport errors are kUnknown.
struct AdmissionDryRun {
  std::string fingerprint;  // "" when none was made yet
  WallTime time{};
  DryRunResult unmodified = DryRunResult::kUnknown;
  DryRunResult injected = DryRunResult::kUnknown;
  std::string message;  // the server's words about the injected pod when it refused it
};

// A pod creation of the workload that failed and names our volume, gate or path.
struct CreateFailure {
  WallTime time{};      // zero: none
  std::string message;  // of the ReplicaFailure condition or the FailedCreate event
};

// What the workload and the PodDisruptionBudgets of its pods promise, and what forbids a hold.
struct RolloutConstraints {
  bool recreate = false;          // a Deployment whose strategy is Recreate
  bool no_surge = false;          // it, or a Rollout, rolls without a pod in addition
  bool in_order = false;          // a StatefulSet that starts one pod after the other
  bool job_deadline = false;      // activeDeadlineSeconds, of a Job or of its pods
  bool queued = false;            // Kueue decides when its pods may start
  Duration progress_deadline{0};  // of a Deployment, or what works like one; 0: none
  int64_t available = 0;          // pods of the workload that serve now
  int64_t required = 0;           // pods that have to at its present size
  // Pods that it may have now: its size and, while it is rolled out, what surges. 0: not known.
  int64_t pods_most = 0;
  bool quota_exceeded = false;  // a pod could not be made for want of quota
};

struct NodeView {
  std::shared_ptr<const api::Node> node;
  // Null when there is none. One whose node_uid is not the node's is stale and treated as none.
  std::shared_ptr<const api::NodeCache> cache;
  size_t warmups_listed = 0;  // entries of all warmups in spec.warmups of its NodeCache
  bool agent_ready = false;   // an agent's pod on this node is Ready
  // allocatable − requests of the non-terminal pods bound here, "pods" included.
  Resources free;
};

// A batch/v1 Job that carries kBuilderWarmupLabel == our uid.
struct BuilderJob {
  std::string name;
  std::string uid;
  std::string key;  // kBuilderKeyLabel
  WallTime created{};
  bool deleting = false;
  bool failed = false;   // condition Failed
  bool refused = false;  // the API server would not make it: there is no such Job
  std::string message;   // of that condition, or of the API server
};

// Another CacheWarmup of the namespace. Older: created earlier, or at the same second with the
// smaller uid.
struct OtherWarmup {
  std::string name;
  bool older = false;
  std::optional<api::WorkloadRef> workload_ref;
  std::map<std::string, std::string> labels;  // its status.injection.labels, {} while it has none
};

// A DesiredBuildRequests that was begun, and what came of it.
struct BuildRequestsState {
  std::string pod_uid;
  bool ended = false;
  std::string failure;  // empty: every request was answered as expected
};

// What the operator was started with.
struct Settings {
  std::string root = "/var/lib/cachewarm";  // as in the admission policy
  std::string builder_priority_class = "cachewarm-builder";
  int builder_jobs_max = 8;  // builder Jobs in the cluster at any time
  int fetch_nodes_max = 32;  // nodes of the cluster that may be told to fetch at the same time
  // Every node that joins the cluster for our pods carries a startup taint of ours until its
  // directory is prepared.
  bool fresh_nodes_tainted = false;
};

struct Snapshot {
  WallTime now{};
  Settings settings;
  // With `deleting` set (or an object that is gone, made up from ns, name and uid with `deleting`
  // set) Decide() withdraws everything.
  api::CacheWarmup warmup;
  Workload workload;
  std::map<std::string, std::string> namespace_labels;
  // Label keys that Services and PodDisruptionBudgets of the namespace select by: builder Jobs have
  // none of these. Those of the workload's own selector and the usual names (app,
  // app.kubernetes.io/name, ...) are left out in any case.
  std::set<std::string> selected_label_keys;
  std::vector<OtherWarmup> others;
  // Why no pod of this cluster can be injected, for people; "" where policy or webhook is
  // installed.
  std::string admission_missing;
  AdmissionDryRun dry_run;
  CreateFailure create_failure;
  // By pod uid: kubelet's words on our volume, of pods whose containers have not started.
  std::map<std::string, std::string> mount_failures;
  RolloutConstraints constraints;
  // Every pod of the namespace that matches the workload's labels, or has kWarmupAnnotation with
  // this warmup's name, or has kBuilderWarmupLabel with its uid. `object` holds at least metadata
  // and spec.{affinity,containers,nodeSelector,schedulingGates,tolerations,volumes}.
  std::vector<std::shared_ptr<const api::Pod>> pods;
  // Groups (gates/groups.h) of held pods above that have a member of another warmup, and that one
  // is not held.
  std::set<std::string> groups_free_elsewhere;
  std::vector<BuilderJob> jobs;
  std::vector<BuildRequestsState> build_requests;
  int builder_jobs_elsewhere = 0;  // of other warmups, not finished
  std::vector<NodeView> nodes;     // all nodes of the cluster
};

}  // namespace cachewarm::plan
