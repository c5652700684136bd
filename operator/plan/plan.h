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
#include "operator/plan/snapshot.h"

// The outcome of Decide(). operator/apply executes it without a policy of its own, in the order of
// the numbered members; a failed step ends the execution, and the next Snapshot is decided again.
namespace cachewarm::plan {

// This warmup's entries in one NodeCache.spec: the full field set of field manager cw-<uid>. An
// empty spec removes them. Listed only if the NodeCache differs.
struct NodeEntries {
  std::string node;
  std::string node_uid;
  api::NodeCacheSpec spec;
};

struct DesiredJob {
  std::string name;
  std::shared_ptr<const codec::Json> object;  // batch/v1 Job, complete
};

// Sets one annotation. The patch tests the uid, because the name may have been reused, and, if
// `held` is set, that this pod still has cachewarm's gate.
struct PodAnnotation {
  std::string ns;
  std::string pod;
  std::string uid;
  std::string key;
  std::string value;
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
  std::vector<std::string> excluded;   // hostnames that are excluded by a required affinity
  EventRequest event;                  // recorded on release, after all releases of the plan
};

// Creates both pods with dryRun=All; the answers come back in Snapshot::dry_run.
struct DryRunRequest {
  std::string fingerprint;
  std::shared_ptr<const codec::Json> unmodified;
  std::shared_ptr<const codec::Json> injected;
};

// Sends spec.compile.requests to the pod of a builder Job; their state comes back in
// Snapshot::build_requests. Planned until the requests have ended, and again after a restart of the
// operator.
struct DesiredBuildRequests {
  std::string pod_uid;
  std::string pod_name;
  std::string pod_ip;
  std::vector<api::BuildRequest> requests;
};

struct BuildOutcome {
  std::string gpu_type;
  std::string reason;  // "Captured" or why it failed
  double seconds = 0;  // from election to end
};

struct Plan {
  // 1. The whole desired status, server-side applied with the resourceVersion of the Snapshot: a
  // stale plan gets 409 and is dropped. `status_changed` is false if nothing differs.
  bool status_changed = false;
  api::WarmupStatus status;
  // 2. Counted once, after the status write has succeeded.
  std::vector<api::StartSample> starts_counted;
  std::vector<BuildOutcome> builds_finished;
  // 3. Recorded together with the status: a later step may fail and be planned again, but a
  // transition is seen only once.
  std::vector<EventRequest> events;
  // 4. Adds or removes kInjectLabel on the warmup; nullopt if it is already correct.
  std::optional<bool> set_inject_label;
  // 5. Written before any gate is released.
  std::vector<NodeEntries> nodes;
  // 6. Written before the releases; a rejected annotation does not stop them.
  std::vector<PodAnnotation> annotations;
  // 7. render::GateReleasePatch makes the patches. Builders come first: all of them are released
  // before any other pod.
  std::vector<GateRelease> releases;
  // 8. Last, so that Jobs delay no release.
  std::vector<DesiredJob> jobs_to_create;  // AlreadyExists is success
  std::vector<std::string> jobs_to_delete;

  std::optional<DryRunRequest> dry_run;
  std::vector<DesiredBuildRequests> build_requests;  // running ones that are not listed are stopped
  std::optional<Duration> requeue_after;             // nullopt: wait for a change
};

// Total and pure: the same Snapshot always gives the same Plan.
Plan Decide(const Snapshot& snapshot);

}  // namespace cachewarm::plan
