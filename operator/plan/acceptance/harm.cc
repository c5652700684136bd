// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/api/reasons.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// The first crash gets a fresh tree (renewals.cc); after the second the tree was not the cause.
constexpr int kCrashesMax = 2;

// Runtimes name the path of a mount that they cannot make: "failed to mkdir /var/lib/...".
bool WaitsForOurPath(const Round& round, const PodView& pod) {
  return pod.container != nullptr && !pod.container->running && !pod.container->terminated &&
         pod.container->message.find(round.in.settings.root + "/") != std::string::npos;
}

Refusal RejectedVolume(const Round& round) {
  for (const PodView& pod : round.pods) {
    if (!pod.ours || pod.finished || pod.pod->meta.deleting) {
      continue;
    }
    const auto failure = round.in.mount_failures.find(pod.pod->meta.uid);
    const bool rejected = failure != round.in.mount_failures.end();
    if (rejected || WaitsForOurPath(round, pod)) {
      return No(reason::kVolumeRejected,
                fmt::format("pod {} cannot start on node {} because of our volume: {}; new pods "
                            "run without the cache until it can, or is deleted",
                            pod.pod->meta.name, pod.pod->node,
                            rejected ? failure->second : pod.container->message));
    }
  }
  return std::nullopt;
}

struct Tally {
  int crashes = 0;    // of injected pods that were never ready
  int most = 0;       // of one pod
  bool well = false;  // an injected pod of this revision has been ready
  bool ill_without_us = false;
  std::string pod;  // the one that crashed most
  std::string words;
};

bool WasReady(const PodView& pod) {
  return pod.counted.has_value() || pod.pod->ready || pod.pod->containers_ready ||
         (pod.container != nullptr && pod.container->terminated && pod.container->exit_code == 0);
}

void Add(Tally& tally, const PodView& pod) {
  if (WasReady(pod)) {
    tally.well = tally.well || pod.ours;
    return;
  }
  const int ends = pod.container == nullptr ? 0 : EndsOf(*pod.container);
  if (!pod.ours) {
    tally.ill_without_us = tally.ill_without_us || ends > 0;
    return;
  }
  tally.crashes += ends;
  if (ends > tally.most) {
    tally.most = ends;
    tally.pod = pod.pod->meta.name;
    tally.words = pod.container->message;
  }
}

// Pods that also crash without the cache, or were ready with it, crash for reasons of their own.
Refusal CrashingPods(const Round& round) {
  std::map<std::string, Tally> by_revision;
  for (const PodView& pod : round.pods) {
    if (!pod.of_job && !pod.pod->meta.deleting) {
      Add(by_revision[pod.revision], pod);
    }
  }
  for (const auto& [revision, tally] : by_revision) {
    // A Job's pods do not restart: there it is the second pod.
    const bool job = round.in.workload.kind == WorkloadKind::kJob;
    const int crashes = job ? tally.crashes : tally.most;
    if (crashes >= kCrashesMax && !tally.well && !tally.ill_without_us) {
      return No(reason::kPodsCrash,
                fmt::format("pod {} ended {} times before it was ready, also with a fresh cache "
                            "directory, and no pod of its revision has been ready with the cache "
                            "(last: {}); new pods run without it. Restart the rollout to try "
                            "again, or delete the CacheWarmup",
                            tally.pod, crashes, tally.words));
    }
  }
  return std::nullopt;
}

}  // namespace

Refusal FindHarm(const Round& round) {
  Refusal harm = RejectedVolume(round);
  return harm ? harm : CrashingPods(round);
}

}  // namespace cachewarm::plan
