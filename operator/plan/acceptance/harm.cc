// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/api/reasons.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/render/fields.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// The first crash gets a fresh tree (renewals.cc); after the second the tree was not the cause.
constexpr int kCrashesMax = 2;

// What such a pod suffers led to a withdrawal already, and that has ended.
bool IsFromBefore(const Round& round, const PodView& pod) {
  const auto& withdrawal = round.out.status.withdrawal;
  return withdrawal && pod.pod->meta.created <= withdrawal->retried_time;
}

// Runtimes name the path of a mount that they cannot make: "failed to mkdir /var/lib/...".
bool WaitsForOurPath(const Round& round, const PodView& pod) {
  return pod.container != nullptr && !pod.container->running && !pod.container->terminated &&
         pod.container->message.find(round.in.settings.root + "/") != std::string::npos;
}

std::optional<Harm> RejectedVolume(const Round& round) {
  std::optional<Harm> out;
  for (const PodView& pod : round.pods) {
    if (!pod.ours || pod.finished || pod.pod->meta.deleting || IsFromBefore(round, pod)) {
      continue;
    }
    const auto failure = round.in.mount_failures.find(pod.pod->meta.uid);
    const bool rejected = failure != round.in.mount_failures.end();
    if (!rejected && !WaitsForOurPath(round, pod)) {
      continue;
    }
    if (!out) {
      out = {.why = reason::kVolumeRejected,
             .message = fmt::format("pod {} cannot start on node {} because of our volume: delete "
                                    "it. New pods run without the cache until it starts there, or "
                                    "the pod template, the CacheWarmup or the node is another. It "
                                    "was told: {}",
                                    pod.pod->meta.name, pod.pod->node,
                                    rejected ? failure->second : pod.container->message),
             .revision = pod.revision};
    }
    out->pods.push_back(&pod);
  }
  return out;
}

// Nobody starts its container again: the second crash is that of another pod.
bool EndsOnce(const Round& round, const PodView& pod) {
  const codec::Json* spec =
      pod.pod->object == nullptr ? nullptr : render::Find(*pod.pod->object, {"spec"});
  return EndsByItself(round.in.workload.kind) ||
         (spec != nullptr && render::Text(*spec, "restartPolicy") == "Never");
}

// Of injected pods that were never ready.
struct Tally {
  int ended = 0;      // crashes of all pods that end once
  int most = 0;       // crashes of one pod
  bool well = false;  // an injected pod of this revision has been ready
  bool ill_without_us = false;
  std::string pod;  // the one that crashed most
  std::string words;
  std::vector<const PodView*> pods;  // that crashed
};

void Add(const Round& round, Tally& tally, const PodView& pod) {
  if (WasReady(round, pod)) {
    tally.well = tally.well || pod.ours;
    return;
  }
  const int ends = pod.container == nullptr ? 0 : EndsOf(*pod.container);
  if (!pod.ours) {
    tally.ill_without_us = tally.ill_without_us || ends > 0;
    return;
  }
  if (ends == 0 || IsFromBefore(round, pod)) {
    return;
  }
  tally.ended += EndsOnce(round, pod) ? ends : 0;
  tally.pods.push_back(&pod);
  if (ends > tally.most) {
    tally.most = ends;
    tally.pod = pod.pod->meta.name;
    tally.words = pod.container->message;
  }
}

std::map<std::string, Tally> CountCrashes(const Round& round) {
  std::map<std::string, Tally> by_revision;
  for (const PodView& pod : round.pods) {
    if (!pod.of_job && !pod.pod->meta.deleting) {
      Add(round, by_revision[pod.revision], pod);
    }
  }
  return by_revision;
}

bool HasAnotherCause(const Tally& tally) {
  return tally.well || tally.ill_without_us;
}

std::string TellWhoEnded(const Tally& tally) {
  return tally.ended > tally.most
             ? fmt::format("{} pods, {} among them, ended", tally.pods.size(), tally.pod)
             : fmt::format("pod {} ended {} times", tally.pod, tally.most);
}

std::optional<Harm> CrashingPods(const Round& round) {
  for (auto& [revision, tally] : CountCrashes(round)) {
    if (std::max(tally.ended, tally.most) >= kCrashesMax && !HasAnotherCause(tally)) {
      return Harm{.why = reason::kPodsCrash,
                  .message = fmt::format(
                      "{} without having been ready, also with a fresh cache "
                      "directory, and no pod of that revision has been ready with the "
                      "cache. New pods run without it: delete those that crash. Restart "
                      "the rollout or change the CacheWarmup to try again. Last words: {}",
                      TellWhoEnded(tally), tally.words),
                  .revision = revision,
                  .pods = tally.pods};
    }
  }
  return std::nullopt;
}

}  // namespace

bool CrashesOtherwise(const Round& round, const std::string& revision) {
  const auto by_revision = CountCrashes(round);
  const auto found = by_revision.find(revision);
  return found != by_revision.end() && HasAnotherCause(found->second);
}

std::optional<Harm> FindHarm(const Round& round) {
  std::optional<Harm> harm = RejectedVolume(round);
  return harm ? harm : CrashingPods(round);
}

}  // namespace cachewarm::plan
