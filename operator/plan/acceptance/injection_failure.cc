// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Injection is suspended after this number of crashes before Ready. After a pod's first crash the
// agent replaces its cache directory (distribution/renewals.cc), so the second crash is not caused
// by a damaged file in it.
constexpr int kCrashesMax = 2;

// True if the pod was created before the last suspension ended. Its failure has already led to that
// suspension and must not cause another one.
bool PredatesRetry(const AcceptanceContext& context, const PodView& pod) {
  const auto& suspension = context.suspension;
  return suspension && pod.pod->meta.created <= suspension->resumed_time;
}

// True if the container does not start because of the cache path. Container runtimes name the path
// of a failed mount: "failed to mkdir /var/lib/...".
bool WaitsForCachePath(const Context& context, const PodView& pod) {
  return pod.container != nullptr && !pod.container->running && !pod.container->terminated &&
         pod.container->message.find(context.in.settings.root + "/") != std::string::npos;
}

std::optional<InjectionFailure> DetectRejectedVolume(const AcceptanceContext& context) {
  std::optional<InjectionFailure> out;
  for (const PodView& pod : context.pods) {
    if (!pod.injected || pod.finished || pod.pod->meta.deleting || PredatesRetry(context, pod)) {
      continue;
    }
    const auto failure = context.in.mount_failures.find(pod.pod->meta.uid);
    const bool rejected = failure != context.in.mount_failures.end();
    if (!rejected && !WaitsForCachePath(context, pod)) {
      continue;
    }
    if (!out) {
      out = {.reason = reason::kVolumeRejected,
             .message = fmt::format(
                 "pod {} cannot start on node {}: kubelet rejected the cache volume ({}). "
                 "Injection is suspended until a pod with this volume starts on the node, or the "
                 "pod template, the CacheWarmup or the node changes. Delete the pod; its "
                 "replacement starts without the cache.",
                 pod.pod->meta.name, pod.pod->node,
                 rejected ? failure->second : pod.container->message),
             .revision = pod.revision};
    }
    out->pods.push_back(&pod);
  }
  return out;
}

// True if the container is never restarted, so that the next crash can only be that of another pod.
bool RunsOnce(const Context& context, const PodView& pod) {
  const codec::Json* spec =
      pod.pod->object == nullptr ? nullptr : codec::At(*pod.pod->object, {"spec"});
  return RunsToCompletion(context.in.workload.kind) ||
         (spec != nullptr && codec::TextAt(*spec, {"restartPolicy"}) == "Never");
}

// Counts, for one revision, the crashes of injected pods that were never ready.
struct CrashTally {
  int run_once_crashes = 0;  // crashes of all pods that are never restarted, added up
  int max_crashes = 0;       // crashes of the pod that crashed most often
  bool has_ready = false;    // an injected pod of this revision was ready
  bool crashes_without_cache = false;
  std::string pod;                   // name of the pod that crashed most often
  std::string message;               // termination message of `pod`
  std::vector<const PodView*> pods;  // pods that crashed
};

void AddCrash(const AcceptanceContext& context, CrashTally& crashes, const PodView& pod) {
  if (WasReady(context, pod)) {
    crashes.has_ready = crashes.has_ready || pod.injected;
    return;
  }
  const int ends = pod.container == nullptr ? 0 : TerminationCount(*pod.container);
  if (!pod.injected) {
    crashes.crashes_without_cache = crashes.crashes_without_cache || ends > 0;
    return;
  }
  if (ends == 0 || PredatesRetry(context, pod)) {
    return;
  }
  crashes.run_once_crashes += RunsOnce(context, pod) ? ends : 0;
  crashes.pods.push_back(&pod);
  if (ends > crashes.max_crashes) {
    crashes.max_crashes = ends;
    crashes.pod = pod.pod->meta.name;
    crashes.message = pod.container->message;
  }
}

std::map<std::string, CrashTally> CountCrashes(const AcceptanceContext& context) {
  std::map<std::string, CrashTally> by_revision;
  for (const PodView& pod : context.pods) {
    if (!pod.of_job && !pod.pod->meta.deleting) {
      AddCrash(context, by_revision[pod.revision], pod);
    }
  }
  return by_revision;
}

bool HasOtherCause(const CrashTally& crashes) {
  return crashes.has_ready || crashes.crashes_without_cache;
}

std::string DescribeCrashes(const CrashTally& crashes) {
  return crashes.run_once_crashes > crashes.max_crashes
             ? fmt::format("{} pods, including {}, exited", crashes.pods.size(), crashes.pod)
             : fmt::format("pod {} exited {} times", crashes.pod, crashes.max_crashes);
}

std::optional<InjectionFailure> DetectCrashingPods(const AcceptanceContext& context) {
  for (auto& [revision, crashes] : CountCrashes(context)) {
    if (std::max(crashes.run_once_crashes, crashes.max_crashes) >= kCrashesMax &&
        !HasOtherCause(crashes)) {
      return InjectionFailure{
          .reason = reason::kPodsCrashing,
          .message = fmt::format(
              "{} before becoming ready, also with an empty cache directory, and no pod of the "
              "same revision became ready with the cache; injection is suspended. Delete the "
              "crashing pods: their replacements start without the cache. To retry, restart the "
              "rollout or change the CacheWarmup. Last termination message: {}",
              DescribeCrashes(crashes), crashes.message),
          .revision = revision,
          .pods = crashes.pods};
    }
  }
  return std::nullopt;
}

}  // namespace

bool HasOtherCrashCause(const AcceptanceContext& context, const std::string& revision) {
  const auto by_revision = CountCrashes(context);
  const auto found = by_revision.find(revision);
  return found != by_revision.end() && HasOtherCause(found->second);
}

std::optional<InjectionFailure> DetectInjectionFailure(const AcceptanceContext& context) {
  std::optional<InjectionFailure> failure = DetectRejectedVolume(context);
  return failure ? failure : DetectCrashingPods(context);
}

}  // namespace cachewarm::plan
