// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"
#include "operator/model/snapshot.h"

// The result of plan::Decide(). operator/apply executes the steps in the order in which struct Plan
// numbers them, and decides nothing itself. A failed step ends the execution; a new Plan is then
// made from the next Snapshot.
namespace cachewarm::model {

// This warmup's entries in the spec of one NodeCache: all fields that field manager cw-<uid of the
// warmup> owns there. An empty spec removes them. Planned only if they differ from the present
// entries.
struct NodeEntries {
  std::string node;
  std::string node_uid;
  api::NodeCacheSpec spec;
};

struct DesiredJob {
  std::string name;
  std::shared_ptr<const codec::Json> object;  // batch/v1 Job, complete
};

// Sets one annotation of a pod. The patch fails if the uid differs, because the pod is then a newer
// one with the same name.
struct PodAnnotation {
  std::string ns;
  std::string pod;
  std::string uid;
  std::string key;
  std::string value;
  // The pod itself, if the annotation is only meant for a held pod: the patch then also fails if
  // the pod no longer has cachewarm's gate. Null: the patch does not check the gate.
  std::shared_ptr<const api::Pod> held;
};

struct ObjectRef {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
};

struct EventRequest {
  ObjectRef regarding;
  bool warning = false;
  std::string reason;
  std::string action;
  std::string note;  // at most 1 kB
};

struct GateRelease {
  std::shared_ptr<const api::Pod> pod;
  std::string reason;  // api::reason::kReleased…
  double held_seconds = 0;
  std::vector<std::string> preferred;  // hostnames, at most 64; empty: no preference
  // Hostnames of nodes that the pod must not use: the release adds a required node affinity (NotIn)
  // with them.
  std::vector<std::string> excluded;
  EventRequest event;  // recorded after all releases of the plan, if this one succeeded
};

// Requests to create `unmodified` and `injected`, two versions of the workload's pod, with
// dryRun=All. The answers are in a later Snapshot::dry_run.
struct DryRunRequest {
  std::string fingerprint;
  std::string revision;   // of the template, as in api::AdmittedContainer
  std::string container;  // the container to read from the answer
  std::shared_ptr<const codec::Json> unmodified;
  std::shared_ptr<const codec::Json> injected;
};

// Asks to send spec.compile.requests to the pod of a builder Job. Snapshot::build_requests reports
// the progress. Every Plan repeats this entry until all requests have ended. If the operator
// restarts before that, it sends all of them again.
struct DesiredBuildRequests {
  std::string pod_uid;
  std::string pod_name;
  std::string pod_ip;
  std::vector<api::BuildRequest> requests;
};

// Asks to read the log of the container of a pod that has started. Snapshot::engine_reports has the
// answer. Every Plan repeats this entry until the answer is in the status.
struct DesiredLogRead {
  std::string pod_uid;
  std::string pod;
  std::string container;
};

struct BuildOutcome {
  std::string gpu_type;
  std::string reason;  // "Captured", or the reason of the failure
  double seconds = 0;  // from the election of the builder to the end of the build
  // Devices of the builder Job, multiplied by the seconds from the start of its container to the
  // end of the build; 0 if the builder is a pod of the workload, or its container is not known.
  double gpu_seconds = 0;
};

struct Plan {
  // Step 1: the whole desired status. The server-side apply contains the resourceVersion that the
  // warmup has in the Snapshot. If the warmup has changed since, the API server answers 409 and the
  // plan is dropped.
  // `status_changed` is false if the status is already as desired.
  bool status_changed = false;
  api::WarmupStatus status;
  // Step 2: results that are added to the operator's metrics, once, after the status write has
  // succeeded.
  std::vector<api::StartSample> starts_counted;
  std::vector<BuildOutcome> builds_finished;
  std::vector<api::StartSample> engines_reported;  // starts that got their EngineStart
  // Step 3: events. They are recorded right after the status write, even if a later step fails: the
  // next plan starts from the new status, so it could not find the changes that the events report.
  std::vector<EventRequest> events;
  // Step 4: true adds kInjectLabel to the warmup, false removes it, nullopt leaves it as it is.
  std::optional<bool> set_inject_label;
  // Step 5: entries of NodeCaches, written before any gate is released.
  std::vector<NodeEntries> nodes;
  // Step 6: annotations of pods, written before the releases; a rejected annotation does not
  // prevent the releases.
  std::vector<PodAnnotation> annotations;
  // Step 7: gates to remove, with the patches of render::GateReleasePatch. Builders come first: all
  // of them are released before any other pod.
  std::vector<GateRelease> releases;
  // Step 8: builder Jobs. They come last, so that they delay no release.
  std::vector<DesiredJob> jobs_to_create;  // the answer AlreadyExists counts as success
  std::vector<std::string> jobs_to_delete;

  // Number of suspended bundles whose keys pods of the current template use, and for which no other
  // bundle serves these keys yet: the pods start cold.
  int bundles_suspended = 0;
  std::optional<DryRunRequest> dry_run;
  // Requests in progress that are not listed here are stopped.
  std::vector<DesiredBuildRequests> build_requests;
  // Answers about pods that are not listed here are forgotten.
  std::vector<DesiredLogRead> log_reads;
  std::optional<Duration> requeue_after;  // nullopt: wait for a change
};

}  // namespace cachewarm::model
