// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/plan/acceptance/injectable.h"
#include "operator/plan/decisions.h"
#include "operator/plan/distribution/node_entries.h"
#include "operator/plan/starts/late_compiles.h"
#include "operator/plan/starts/savings.h"
#include "operator/plan/starts/start_cause.h"
#include "operator/plan/starts/start_event.h"
#include "operator/plan/starts/totals.h"

namespace cachewarm::plan {

using api::StartResult;
using api::StartSample;

namespace {

// After a pod has completed its first start, the agent has this time to report its evidence, i.e.
// how the engine used the cache. Without evidence, the start then counts as `unknown`.
constexpr Duration kEvidenceWait = std::chrono::seconds(90);
// Maximum number of starts that one plan counts. Less than the length of status.starts.recent, so
// that each pod is annotated with its result before that list drops the result.
constexpr size_t kCountedPerPlan = 32;
constexpr size_t kCountedMax = 256;
// No start is counted while so many counted pods lack the annotation: the length of
// status.starts.recent, from which the annotations are written.
constexpr size_t kUnannotatedMax = 64;
// Time until the next attempt while the annotations of counted pods cannot be written. A written
// annotation causes a plan at once.
constexpr Duration kBlockedRecheck = std::chrono::seconds(30);
constexpr size_t kWindowsMax = 64;       // maximum number of observed starts per node
constexpr size_t kQuotedBytesMax = 253;  // a longer value of an annotation is quoted in part

struct FirstStart {
  const PodView* pod = nullptr;
  size_t node = 0;
  WallTime started{};
  WallTime ready{};  // zero while not ready
  const api::StartEvidence* evidence = nullptr;
};

const api::StartEvidence* EvidenceOf(const NodeState& node, const std::string& uid) {
  if (node.cache != nullptr) {
    for (const api::StartEvidence& evidence : node.cache->status.starts) {
      if (evidence.pod_uid == uid) {
        return &evidence;
      }
    }
  }
  return nullptr;
}

// True if a pod that was created without the cache should get an event with the cause. While the
// warmup injects, every such pod should. If the warmup injected earlier but does not now, a pod
// should only if the warmup is not paused and the pod does not name another warmup.
bool ShouldExplainSkippedPods(const PlanContext& context, const PodView& pod) {
  return context.acceptance.inject ||
         (context.in.warmup.status.starts.counting_started_time != WallTime{} &&
          !context.paused() && !pod.of_other_warmup);
}

// True if the pod was created without the cache, and since the last change of the status of
// condition `Ready`, so that the present state explains why. Possible reasons are: the admission
// policy had not seen the warmup yet, the pod cannot be injected, or injection is suspended. Such a
// start counts as cold, without waiting for evidence.
bool IsInjectionSkipped(const PlanContext& context, const PodView& pod) {
  const api::Condition* ready = api::FindCondition(context.in.warmup.status.conditions, "Ready");
  const char* said = context.acceptance.inject ? "True" : "False";
  return !pod.injected && !pod.of_job && pod.container != nullptr && pod.container->restarts == 0 &&
         ShouldExplainSkippedPods(context, pod) && ready != nullptr && ready->status == said &&
         pod.pod->meta.created >= ready->last_transition_time;
}

// Returns one entry for each pod whose first start, complete or in progress, is not counted yet;
// sorted by ready time.
std::vector<FirstStart> FindStarts(const PlanContext& context) {
  std::vector<FirstStart> out;
  for (const PodView& pod : context.pods) {
    // The start of a proof is neither cold nor a start of the workload.
    if (!(pod.injected || IsInjectionSkipped(context, pod)) || pod.of_proof || pod.counted ||
        pod.node < 0 || pod.container == nullptr) {
      continue;
    }
    const size_t index = static_cast<size_t>(pod.node);
    const NodeState& node = context.nodes[index];
    FirstStart start{.pod = &pod,
                     .node = index,
                     .started = pod.container->started_time,
                     .ready = ReadyAt(context, pod),
                     .evidence = EvidenceOf(node, pod.pod->meta.uid)};
    if (start.started != WallTime{}) {
      out.push_back(start);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FirstStart& a, const FirstStart& b) { return a.ready < b.ready; });
  return out;
}

bool IsBuilder(const PlanContext& context, const PodView& pod) {
  const auto& builders = context.builds.builders;
  return pod.of_job || std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
           return each.pod_uid == pod.pod->meta.uid && !each.node.empty();
         });
}

// Returns the bundle of the start's key if it was published before the start.
const api::BundleStatus* EarlierBundle(const PlanContext& context, const FirstStart& start) {
  const LiveKey* key = FindKey(context, context.nodes[start.node].target, start.pod->factors);
  const api::BundleStatus* bundle = key == nullptr ? nullptr : context.builds.bundles.For(*key);
  return bundle != nullptr && bundle->published_time < start.started ? bundle : nullptr;
}

// True if the node had the bundle when the pod started; otherwise the start could not be a hit. The
// node may have had the tree of another bundle, and the new one while the pod compiled.
bool HadBundle(const PlanContext& context, const FirstStart& start) {
  const api::BundleStatus* bundle = EarlierBundle(context, start);
  if (bundle == nullptr) {
    return false;
  }
  const std::optional<WallTime> since = ActiveSince(context, context.nodes[start.node], *bundle);
  return since.has_value() && start.started > *since;
}

StartResult ClassifyStart(const PlanContext& context, const FirstStart& start) {
  if (IsBuilder(context, *start.pod)) {
    return StartResult::kBuilder;
  }
  if (!start.pod->injected) {
    return StartResult::kCold;
  }
  if (start.evidence == nullptr || start.pod->container->restarts > 0) {
    return StartResult::kUnknown;
  }
  // A part of the files may come from a bundle of another key. That is an incomplete hit only while
  // no bundle of the pod's own key exists.
  const bool compiled =
      start.evidence->result == StartResult::kMiss ||
      (start.evidence->result == StartResult::kPartial && EarlierBundle(context, start) != nullptr);
  return compiled && !HadBundle(context, start) ? StartResult::kCold : start.evidence->result;
}

StartSample Measure(const PlanContext& context, const api::Starts& starts,
                    const FirstStart& start) {
  const PodView& pod = *start.pod;
  const NodeState& node = context.nodes[start.node];
  const LiveKey* key = FindKey(context, node.target, pod.factors);
  StartSample out{
      .pod_uid = pod.pod->meta.uid,
      .pod = pod.pod->meta.name,
      .node = pod.pod->node,
      .key = key == nullptr ? std::string() : key->key,
      .gpu_type = node.cache == nullptr ? std::string() : node.cache->status.node.gpu_type,
      .result = ClassifyStart(context, start),
      .hold_seconds = gate::HeldSecondsOf(*pod.pod),
      .devices = pod.factors.devices};
  // The time until Ready is the engine's start time only if there is a readiness probe and the
  // container was not restarted.
  if (context.pod_template.has_readiness_probe && pod.container->restarts == 0) {
    out.start_seconds =
        std::max(0.0, std::chrono::duration<double>(start.ready - start.started).count());
  }
  if (start.evidence != nullptr) {
    out.compile_seconds = start.evidence->compile_seconds;
    out.compiled_after_seconds = start.evidence->compiled_after_seconds;
  }
  out.saved_seconds = NetSavedSeconds(starts, context.builds.bundles.published(), out);
  return out;
}

void RequestWindow(const PlanContext& context, const FirstStart& start, CountedStarts& out) {
  auto& windows = out.windows[start.node];
  if (windows.size() < kWindowsMax) {
    windows.push_back({.pod_uid = start.pod->pod->meta.uid,
                       .warmup_uid = context.uid(),
                       .run_as = start.pod->run_as,
                       .started_time = start.started,
                       .ready_time = start.ready});
  }
}

std::string WhyInjectionSkipped(const PlanContext& context, const PodView& pod) {
  std::string why = WhyNotInjectable(*pod.pod->object, context.in.settings.root);
  if (!why.empty()) {
    return why;
  }
  if (pod.of_other_warmup) {
    const std::string_view value = pod.pod->meta.annotations.find(api::kWarmupAnnotation)->second;
    return fmt::format("annotation {} names a different CacheWarmup, \"{}\"",
                       api::kWarmupAnnotation, value.substr(0, kQuotedBytesMax));
  }
  if (!context.acceptance.inject) {
    return fmt::format("{}: {}", context.acceptance.ready.reason, context.acceptance.ready.message);
  }
  return "the pod was created before the admission policy had seen the CacheWarmup";
}

void CountStart(const PlanContext& context, const FirstStart& start, CountedStarts& out) {
  api::Starts& starts = out.starts;
  StartSample sample = Measure(context, starts, start);
  const CountedStart counted{.pod = *start.pod,
                             .node = context.nodes[start.node],
                             .sample = sample,
                             .started = start.started,
                             .evidence = start.evidence,
                             .had_bundle = HadBundle(context, start)};
  sample.cause = WhyCompiled(context, counted);
  AddSample(starts, sample);
  starts.counted_pod_uids.push_back(sample.pod_uid);
  if (starts.counted_pod_uids.size() > kCountedMax) {
    starts.counted_pod_uids.erase(starts.counted_pod_uids.begin());
  }
  out.counted.push_back(sample);
  if (!start.pod->injected && !start.pod->of_job) {
    out.effects.events.push_back(
        MakePodEvent(*start.pod->pod, api::reason::kInjectionSkipped,
                     "started without the cache: " + WhyInjectionSkipped(context, *start.pod)));
  } else if (std::optional<EventRequest> event = MakeStartEvent(*start.pod->pod, sample)) {
    out.effects.events.push_back(*std::move(event));
  }
}

// Returns the number of pods that are counted and lack the annotation, because it is not written
// yet or the API server rejects it.
size_t CountUnannotated(const Context& context, const api::Starts& starts) {
  const std::set<std::string_view> counted(starts.counted_pod_uids.begin(),
                                           starts.counted_pod_uids.end());
  return static_cast<size_t>(
      std::count_if(context.pods.begin(), context.pods.end(), [&](const PodView& pod) {
        return counted.contains(pod.pod->meta.uid) &&
               !pod.pod->meta.annotations.contains(api::kStartAnnotation);
      }));
}

// Annotates each counted pod with its result. The annotation remains after status.starts.recent has
// dropped the result.
void Annotate(const PlanContext& context, CountedStarts& out) {
  for (const StartSample& sample : out.starts.recent) {
    const PodView* pod = FindPod(context, sample.pod_uid);
    if (pod == nullptr || pod->pod->meta.annotations.contains(api::kStartAnnotation)) {
      continue;
    }
    out.effects.annotations.push_back(
        {.ns = pod->pod->meta.ns,
         .pod = pod->pod->meta.name,
         .uid = pod->pod->meta.uid,
         .key = std::string(api::kStartAnnotation),
         .value = DescribeSample(sample, pod->injected || pod->of_job
                                             ? std::string()
                                             : WhyInjectionSkipped(context, *pod))});
  }
}

// Returns the revisions of which a pod had a hit or was captured.
std::set<std::string> FindProven(const PlanContext& context,
                                 const std::vector<StartSample>& counted) {
  std::set<std::string> out;
  for (const PodView& pod : context.pods) {
    const bool hit_now = std::any_of(counted.begin(), counted.end(), [&](const auto& each) {
      return each.pod_uid == pod.pod->meta.uid && each.result == StartResult::kHit;
    });
    if (hit_now || pod.counted == StartResult::kHit) {
      out.insert(pod.revision);
    }
  }
  for (const api::BuilderStatus& builder : context.builds.builders) {
    if (builder.state == api::BuilderState::kCaptured && builder.job.empty()) {
      out.insert(builder.revision);
    }
  }
  if (const auto& injection = context.acceptance.injection) {
    out.insert(injection->warm_revisions.begin(), injection->warm_revisions.end());
  }
  return out;
}

}  // namespace

CountedStarts DecideStarts(const PlanContext& context) {
  CountedStarts out{.starts = context.in.warmup.status.starts};
  if (context.deleting()) {
    return out;
  }
  if (out.starts.counting_started_time == WallTime{} && context.acceptance.inject) {
    out.starts.counting_started_time = context.stamp();
  }
  if (out.starts.counting_started_time != WallTime{}) {
    CountLateCompiles(context, out.starts);
    for (const Target& target : context.targets) {
      TotalsOf(out.starts, target.gpu_type);  // so that its counters are served from 0 on
    }
    for (const BuildOutcome& build : context.builds.effects.builds_finished) {
      double& total = TotalsOf(out.starts, build.gpu_type).builder_gpu_seconds;
      total = Rounded(total + build.gpu_seconds);
    }
  }
  // The list of counted pods is bounded. A pod that is dropped from it without an annotation would
  // be counted again.
  const bool is_blocked = CountUnannotated(context, out.starts) >= kUnannotatedMax;
  for (const FirstStart& start : FindStarts(context)) {
    const bool ended = start.ready != WallTime{};
    const bool is_decided = start.evidence != nullptr || !start.pod->injected ||
                            start.pod->container->restarts > 0 ||
                            context.in.now >= start.ready + kEvidenceWait;
    if (ended && is_decided && !is_blocked && out.counted.size() < kCountedPerPlan) {
      CountStart(context, start, out);
      continue;
    }
    if (ended && is_decided) {
      out.effects.RequeueAt(is_blocked ? context.in.now + kBlockedRecheck : context.in.now);
    } else if (ended) {
      out.effects.RequeueAt(start.ready + kEvidenceWait);
    } else {
      out.effects.RequeueAt(ReadyLaterAt(context, *start.pod));
    }
    if (start.pod->injected && start.pod->container->restarts == 0) {
      RequestWindow(context, start, out);
    }
  }
  FollowEngineLogs(context, out);
  Annotate(context, out);
  out.proven_revisions = FindProven(context, out.counted);
  return out;
}

}  // namespace cachewarm::plan
