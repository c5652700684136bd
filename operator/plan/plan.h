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

// What Decide() wants done. operator/apply executes it without a policy of its own, in the order
// of the members: a failure of one step ends the round, and the next Snapshot decides again.
namespace cachewarm::plan {

// Entries of this warmup in one NodeCache.spec: the full set of field manager cw-<uid>. An empty
// spec removes them. Listed only where the NodeCache differs from it.
struct NodeEntries {
  std::string node;
  std::string node_uid;
  api::NodeCacheSpec spec;
};

struct DesiredJob {
  std::string name;
  std::shared_ptr<const codec::Json> object;  // batch/v1 Job, complete
};

// Sets one annotation. The patch tests the uid: a pod of the same name is another pod; and, where
// `held` is set, that this pod still waits at our gate.
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
  std::vector<std::string> excluded;   // hostnames that must not be used; at most 1
  EventRequest event;                  // told when it is released, after all others are
};

// Create both pods with dryRun=All and hand the answers back in Snapshot::rehearsal.
struct DryRunRequest {
  std::string fingerprint;
  std::shared_ptr<const codec::Json> unmodified;
  std::shared_ptr<const codec::Json> injected;
};

// Send spec.compile.requests to the pod of a builder Job and hand their state back in
// Snapshot::build_requests; wished until they have ended, and again after that was forgotten.
struct DesiredBuildRequests {
  std::string pod_uid;
  std::string pod_name;
  std::string pod_ip;
  std::vector<api::BuildRequest> requests;
};

struct BuildOutcome {
  std::string gpu_type;
  std::string reason;  // "Captured" or why it failed
  double seconds = 0;  // election → end
};

struct Plan {
  // 1. The whole desired status, server-side applied with the resourceVersion of the Snapshot (a
  // stale plan gets 409 and is dropped). `status_changed` is false when it equals what is there.
  bool status_changed = false;
  api::WarmupStatus status;
  // 2. kInjectLabel on the warmup; nothing when it is already right.
  std::optional<bool> set_inject_label;
  // 3. Before any gate is released.
  std::vector<NodeEntries> nodes;
  // 4.
  std::vector<DesiredJob> jobs_to_create;  // AlreadyExists is success
  std::vector<std::string> jobs_to_delete;
  // 5.
  std::vector<PodAnnotation> annotations;
  // 6. render::GateReleasePatch makes the patch. Builders come first, and are through before any
  // other is begun.
  std::vector<GateRelease> releases;
  // 7.
  std::vector<EventRequest> events;
  // 8. Counted once, after the status write has succeeded.
  std::vector<api::StartSample> starts_counted;
  std::vector<BuildOutcome> builds_finished;

  std::optional<DryRunRequest> dry_run;
  std::vector<DesiredBuildRequests> build_requests;  // what was begun and is not here is ended
  std::optional<Duration> requeue_after;             // nothing: only a change can matter
};

// Total and pure: the same Snapshot always gives the same Plan.
Plan Decide(const Snapshot& snapshot);

}  // namespace cachewarm::plan
