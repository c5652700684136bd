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

// The input of plan::Decide(): the state of one warmup at one moment, read by operator/observe.
// Contains only values, which do not change after construction.
namespace cachewarm::model {

enum class WorkloadKind {
  kDeployment,  // or another kind that scales like one: an Argo Rollout
  kStatefulSet,
  kJob,
  kCronJob,
  kGroup,  // pods that only work together: a LeaderWorkerSet, a RayCluster
  kTemplate,
  kSelector,
};

// True if all pods of the kind run to completion.
constexpr bool RunsToCompletion(WorkloadKind kind) {
  return kind == WorkloadKind::kJob || kind == WorkloadKind::kCronJob;
}

struct Workload {
  WorkloadKind kind = WorkloadKind::kDeployment;
  bool found = false;
  std::string problem;  // if not found: message for users that names the missing object
  std::string name;     // "" for kTemplate and kSelector
  std::string uid;
  // spec.selector.matchLabels of the workload; for kTemplate and kSelector, spec.selector of the
  // warmup. Empty if the workload's selector has only matchExpressions.
  std::map<std::string, std::string> selector;
  int64_t replicas = 1;  // spec.replicas; 1, the API's default, if unset; 0 for kTemplate
  // The PodTemplateSpec {metadata, spec}. Null if there is none. Also null for kSelector: Decide()
  // then takes the template from the newest pod.
  std::shared_ptr<const codec::Json> pod_template;
};

// The API server's answer to a dry-run create.
enum class DryRunResult { kUnknown, kAllowed, kRefused };

// The last admission dry run of the workload's pod, without (`unmodified`) and with (`injected`)
// cachewarm's changes. `fingerprint` is that of the answered DryRunRequest: it differs from that of
// a new request if the pod has changed since. A result is kUnknown if the answer shows nothing
// about the pod: an exceeded quota, a rate limit, a webhook without dry-run support, or a transport
// error.
struct AdmissionDryRun {
  std::string fingerprint;  // "" if there was none yet
  WallTime time{};
  DryRunResult unmodified = DryRunResult::kUnknown;
  DryRunResult injected = DryRunResult::kUnknown;
  std::string message;  // the server's reason for refusing the injected pod
  // The container in the pod that the server returned for `unmodified`; nullopt if it returned
  // none.
  std::optional<api::AdmittedContainer> admitted;
};

// The latest failed creation of a pod of the workload whose error message names cachewarm's volume,
// gate or path.
struct CreateFailure {
  WallTime time{};      // zero: none
  std::string message;  // from the ReplicaFailure condition or the FailedCreate event
};

// The last release of a held pod that the API server rejected in the warmup's namespace.
struct ReleaseRefusal {
  WallTime time{};      // zero: none
  std::string message;  // the API server's error
};

// Time during which no pod of a namespace gets a gate after a release there was rejected.
inline constexpr Duration kReleaseRefusalLasts = std::chrono::minutes(10);

// Availability constraints of the workload and its PodDisruptionBudgets, and settings that forbid
// holding pods.
struct RolloutConstraints {
  bool recreate = false;      // a Deployment whose strategy is Recreate
  bool no_surge = false;      // a Deployment or Rollout that rolls out without an additional pod
  bool in_order = false;      // a StatefulSet that starts its pods one by one
  bool job_deadline = false;  // activeDeadlineSeconds is set on a Job or its pods
  bool queued = false;        // Kueue decides when the workload's pods may start
  Duration progress_deadline{0};  // progressDeadlineSeconds of the workload; 0: none
  int64_t available = 0;          // number of pods of the workload that are available
  int64_t required = 0;           // available pods that its strategy and disruption budgets require
  // Maximum number of pods that the workload may have now: its size, plus the surge during a
  // rollout. 0: unknown.
  int64_t pods_most = 0;
  bool quota_exceeded = false;  // a pod was not created because a quota was exceeded
};

struct NodeView {
  std::shared_ptr<const api::Node> node;
  // Null if the node has no NodeCache. May still be the NodeCache of a deleted node of the same
  // name: Decide() ignores it if its node_uid is not the uid of `node`.
  std::shared_ptr<const api::NodeCache> cache;
  // Number of entries in spec.warmups of the NodeCache, one for each warmup that uses the node.
  // `cache` may hold only some of these entries.
  size_t warmups_listed = 0;
  bool agent_ready = false;  // an agent's pod on this node is Ready
  // Unused capacity: allocatable minus the requests of the non-terminal pods bound to the node.
  // Includes the resource "pods".
  api::Resources free;
};

// A batch/v1 Job whose label kBuilderWarmupLabel is the uid of this warmup.
struct BuilderJob {
  std::string name;
  std::string uid;
  std::string key;  // value of its label kBuilderKeyLabel
  WallTime created{};
  bool deleting = false;
  bool failed = false;   // condition Failed
  bool refused = false;  // the API server rejected its creation: the Job does not exist
  // If failed: the message of condition Failed; if refused: the API server's error.
  std::string message;
};

// Another CacheWarmup of the namespace. `older` is true if it was created earlier, or in the same
// second but with a smaller uid.
struct OtherWarmup {
  std::string name;
  bool older = false;
  std::optional<api::WorkloadRef> workload_ref;
  std::map<std::string, std::string> labels;  // its status.injection.labels; {} if unset
};

// The progress of the requests that one DesiredBuildRequests (operator/model/plan.h) asks to send.
struct BuildRequestsState {
  std::string pod_uid;
  bool ended = false;   // all requests were answered, or one has failed
  std::string failure;  // why a request failed, for users; empty: none has failed
};

// The answer to a DesiredLogRead (operator/model/plan.h).
struct EngineReport {
  std::string pod_uid;
  api::EngineStart start;
};

// Settings of the operator.
struct Settings {
  // Directory of all caches on every node. The admission policy must have the same value.
  std::string root = "/var/lib/cachewarm";
  std::string builder_priority_class = "cachewarm-builder";
  int builder_jobs_max = 8;  // maximum number of builder Jobs in the cluster at any time
  int fetch_nodes_max = 32;  // maximum number of nodes in the cluster that fetch at the same time
  // Shortest time between the beginnings of two harvests of one key (spec.harvest).
  Duration harvest_interval = std::chrono::minutes(30);
  // True if every node that joins the cluster has a cachewarm startup taint, which keeps pods off
  // the node until its directory is prepared.
  bool fresh_nodes_tainted = false;
  bool engine_logs = false;  // read the logs of started containers
};

struct Snapshot {
  WallTime now{};
  Settings settings;
  // Salt of the hashes in factors of starts (operator/factors); empty: it could not be read, so
  // that no factors are recorded or compared.
  std::string factor_salt;
  // If its member `deleting` is set, Decide() removes everything that belongs to the warmup. A
  // warmup that no longer exists is represented by its namespace, name and uid, with `deleting`
  // set.
  api::CacheWarmup warmup;
  Workload workload;
  std::map<std::string, std::string> namespace_labels;
  // Label keys in the selectors of the namespace's Services and PodDisruptionBudgets. The pods of
  // builder Jobs get no label with such a key, so that these objects do not select them. For the
  // same reason they get neither the labels of the workload's own selector nor the usual ones (app,
  // app.kubernetes.io/name, ...).
  std::set<std::string> selected_label_keys;
  std::vector<OtherWarmup> others;
  // The reason why no pod of this cluster can be injected, as a message for users; "" if the policy
  // or webhook is installed.
  std::string admission_missing;
  AdmissionDryRun dry_run;
  CreateFailure create_failure;
  ReleaseRefusal release_refusal;
  // By pod uid: kubelet's error about the cache volume. Has only pods whose containers have not
  // started.
  std::map<std::string, std::string> mount_failures;
  RolloutConstraints constraints;
  // Every pod of the namespace that matches the workload's labels, has kWarmupAnnotation with this
  // warmup's name, or has kBuilderWarmupLabel with its uid. `object` holds at least metadata and
  // spec.{affinity,containers,nodeSelector,schedulingGates,tolerations,volumes}.
  std::vector<std::shared_ptr<const api::Pod>> pods;
  // Groups (pod_groups.h) that contain both a held pod of `pods` and a pod that is not held and
  // belongs to another warmup. Decide() releases the held pods of these groups, because the pods of
  // a group are held all together or not at all.
  std::set<std::string> groups_free_elsewhere;
  std::vector<BuilderJob> jobs;
  std::vector<BuildRequestsState> build_requests;
  std::vector<EngineReport> engine_reports;
  int builder_jobs_elsewhere = 0;  // unfinished builder Jobs of other warmups
  std::vector<NodeView> nodes;     // all nodes of the cluster
};

}  // namespace cachewarm::model
