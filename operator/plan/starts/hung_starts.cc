// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "lib/api/json/limits.h"
#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/decisions.h"
#include "operator/plan/distribution/node_entries.h"
#include "operator/plan/starts/savings.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BundleStatus;
using api::HungStart;
using api::SuspendedBundle;

namespace {

constexpr size_t kHungStartsToSuspend = 2;
constexpr double kColdFactor = 3;

struct Hang {
  const PodView* pod = nullptr;
  std::string key;
  std::string bundle_key;  // differs from `key` if the bundle serves several CPU classes
};

// True if the pod's start is in progress, so that it counts as hung once it exceeds the limit
// (LimitFor): the container runs, but not all containers of the pod are ready. Excludes pods that
// still wait for a node or an image, because the time is measured from the start of the container;
// pods whose containers are all ready, because these wait for a readiness gate and not for the
// engine; and pods on a node that is not Ready, because their readiness is unknown.
bool IsStarting(const Context& context, const PodView& pod) {
  return !pod.of_job && !pod.finished && !pod.runs_to_completion && !pod.pod->meta.deleting &&
         pod.node >= 0 && context.nodes[static_cast<size_t>(pod.node)].ready &&
         pod.container != nullptr && pod.container->running &&
         pod.container->started_time != WallTime{} && !pod.pod->containers_ready &&
         !WasReady(context, pod);
}

// Returns the bundle of the pod's key if it was active on the node before the container started, so
// that the container mounted its files; nullptr if it was not, or may not have been.
const BundleStatus* MountedBundle(const Context& context, const Bundles& bundles,
                                  const PodView& pod, const LiveKey& key) {
  const NodeState& node = context.nodes[static_cast<size_t>(pod.node)];
  const BundleStatus* bundle = pod.injected ? bundles.For(key) : nullptr;
  if (bundle == nullptr) {
    return nullptr;
  }
  const std::optional<WallTime> since = ActiveSince(context, node, *bundle);
  return since.has_value() && pod.container->started_time > *since ? bundle : nullptr;
}

// Returns the median seconds of cold starts of the pod's key or, if none was measured, of the key
// that the bundle was built for; 0 if neither key has one.
double ColdSecondsFor(const Context& context, const LiveKey& key, const BundleStatus* bundle) {
  const api::Starts& starts = context.in.warmup.status.starts;
  const double own = ColdSecondsOfKey(starts, key.key);
  return own > 0 || bundle == nullptr ? own : ColdSecondsOfKey(starts, bundle->key);
}

Duration LimitFor(const Context& context, double cold_seconds) {
  const double limit =
      std::max(kColdFactor * cold_seconds, cold_seconds + context.in.warmup.spec.hang_seconds);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(limit));
}

// Returns the starts with a bundle that have exceeded their limits. Omits those of a key if a start
// of that key without the cache volume has exceeded the limit too, because the bundle is then not
// the cause. An injected start without the present bundle proves nothing: it may have used an
// earlier bundle.
std::vector<Hang> FindHangs(const Context& context, const Bundles& bundles, Effects& effects) {
  std::vector<Hang> out;
  std::set<std::string> slow_without_cache;
  for (const PodView& pod : context.pods) {
    if (!IsStarting(context, pod)) {
      continue;
    }
    const LiveKey* key =
        FindKey(context, context.nodes[static_cast<size_t>(pod.node)].target, pod.factors);
    const BundleStatus* bundle =
        key == nullptr ? nullptr : MountedBundle(context, bundles, pod, *key);
    const double cold = key == nullptr ? 0 : ColdSecondsFor(context, *key, bundle);
    if (cold <= 0) {
      continue;
    }
    const WallTime deadline = pod.container->started_time + LimitFor(context, cold);
    if (context.in.now < deadline) {
      effects.RequeueAt(deadline);
    } else if (bundle != nullptr) {
      out.push_back({.pod = &pod, .key = key->key, .bundle_key = bundle->key});
    } else if (!pod.injected) {
      slow_without_cache.insert(key->key);
    }
  }
  std::erase_if(out, [&](const Hang& hang) { return slow_without_cache.contains(hang.key); });
  return out;
}

// True if the start, or that of another pod of its group, is already recorded: the pods of a group
// start together, so one that hangs stops all of them.
bool IsRecorded(const std::vector<HungStart>& starts, const HungStart& start, const PodView& pod) {
  return std::any_of(starts.begin(), starts.end(), [&](const HungStart& each) {
    const bool together = !start.group.empty() && each.group == start.group &&
                          pod.pod->meta.created <= each.detected_time;
    return each.pod_uid == start.pod_uid || together;
  });
}

void RecordHang(const Context& context, const PodView& pod, BundleStatus& bundle,
                Effects& effects) {
  const HungStart start{.pod_uid = pod.pod->meta.uid,
                        .pod = pod.pod->meta.name,
                        .node = pod.pod->node,
                        .group = model::GroupOf(*pod.pod).substr(0, api::json::kGroupBytes),
                        .started_time = pod.container->started_time,
                        .detected_time = context.stamp()};
  if (bundle.hung_starts.size() >= api::kHungStartsMax ||
      IsRecorded(bundle.hung_starts, start, pod)) {
    return;
  }
  bundle.hung_starts.push_back(start);
  effects.RecordEvent(
      context.in.warmup, true, reason::kStartHung,
      fmt::format(
          "pod {} on node {} started with bundle {} at {} and is not Ready after "
          "{} s; after {} such starts the bundle is suspended",
          start.pod, start.node, bundle.digest.ToString(), FormatTime(start.started_time),
          std::chrono::duration_cast<std::chrono::seconds>(context.in.now - start.started_time)
              .count(),
          kHungStartsToSuspend));
}

std::string Describe(const BundleStatus& bundle) {
  std::string pods;
  for (const HungStart& start : bundle.hung_starts) {
    if (pods.size() > api::json::kMessageBytes * 2 / 5) {
      pods += ", and others";
      break;
    }
    pods += fmt::format("{}{} on node {} (container started {}, not Ready at {})",
                        pods.empty() ? "" : ", ", start.pod, start.node,
                        FormatTime(start.started_time), FormatTime(start.detected_time));
  }
  return fmt::format(
      "bundle {} is suspended because starts with it hung: {}. New pods start without it. Delete "
      "the hung pods; their replacements start without the bundle. If the starts were only slow, "
      "raise spec.hangSeconds",
      bundle.digest.ToString(), pods);
}

SuspendedBundle MakeSuspended(const Context& context, const BundleStatus& bundle) {
  return {.key = bundle.key,
          .digest = bundle.digest,
          .gpu_type = bundle.gpu_type,
          .cpu_class = bundle.cpu_class,
          .image = bundle.image,
          .native = bundle.native,
          .extends = bundle.extends,
          .suspended_time = context.stamp(),
          .hung_starts = bundle.hung_starts,
          .message = TruncateMessage(Describe(bundle))};
}

// Counts the suspension of `bundle` at the last build of its key. Fails that build if it runs and
// its pod started with the bundle, because a capture of the pod's directory would publish the
// bundle's files again.
void NoteSuspension(const Context& context, const BundleStatus& bundle, BundleReview& out) {
  api::BuilderStatus* builder = FindBuilder(out.builders, bundle.key);
  if (builder == nullptr) {
    return;
  }
  ++builder->bundles_suspended;
  if (IsRunning(*builder) && !builder->node.empty()) {
    FailBuild(context, out.effects, *builder,
              {.event = BuildEvent::kBundleSuspended,
               .message = fmt::format("pod {} started with bundle {}, which is suspended now",
                                      builder->pod_name, bundle.digest.ToString())});
  }
}

}  // namespace

BundleReview DecideHungStarts(const Context& context) {
  BundleReview out{.bundles = Bundles(context), .builders = context.in.warmup.status.builders};
  if (context.deleting() || !context.pod_template.has_readiness_probe) {
    return out;
  }
  std::vector<BundleStatus> bundles = out.bundles.published();
  for (const Hang& hang : FindHangs(context, out.bundles, out.effects)) {
    const auto found = std::find_if(bundles.begin(), bundles.end(),
                                    [&](const auto& each) { return each.key == hang.bundle_key; });
    if (found != bundles.end()) {
      RecordHang(context, *hang.pod, *found, out.effects);
    }
  }
  const auto is_suspended = [](const BundleStatus& bundle) {
    return bundle.hung_starts.size() >= kHungStartsToSuspend;
  };
  for (const BundleStatus& bundle : bundles) {
    if (is_suspended(bundle)) {
      out.bundles.Suspend(MakeSuspended(context, bundle));
      NoteSuspension(context, bundle, out);
    }
  }
  std::erase_if(bundles, is_suspended);
  out.bundles.Replace(std::move(bundles));
  return out;
}

}  // namespace cachewarm::plan
