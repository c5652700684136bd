// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/gate/release.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"
#include "operator/plan/evidence/savings.h"
#include "operator/render/injection.h"

namespace cachewarm::plan {

using api::StartResult;
using api::StartSample;

namespace {

// How long an agent may take to say what it saw. A pod that it says nothing about is `unknown`.
constexpr Duration kEvidenceWait = std::chrono::seconds(90);
constexpr size_t kCountedPerRound = 32;  // the ring and the annotations keep up with it
constexpr size_t kCountedMax = 256;
constexpr size_t kWindowsMax = 64;       // per node
constexpr size_t kQuotedBytesMax = 253;  // of what anybody may write on a pod: a whole name

struct FirstStart {
  const PodView* pod = nullptr;
  size_t node = 0;
  WallTime started{};
  WallTime ready{};  // zero until it is
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

// Injects, or did and was made to stop: its pods are told why they have no cache. Not while it is
// paused: then nothing new is done.
bool OwesReasons(const Round& round, const PodView& pod) {
  return round.acceptance.inject ||
         (round.out.status.starts.since != WallTime{} && !round.paused() && !pod.of_another);
}

// Not injected although the warmup had taken its last decision about injecting before the pod was
// created. In its first moments a warmup is not seen by the admission policy, some pods it must
// leave alone, and all of them while its injection is withdrawn. They start cold, and nothing waits
// for them.
bool IsLeftAlone(const Round& round, const PodView& pod) {
  const api::Condition* ready = api::FindCondition(round.in.warmup.status.conditions, "Ready");
  const char* said = round.acceptance.inject ? "True" : "False";
  return !pod.ours && !pod.of_job && pod.container != nullptr && pod.container->restarts == 0 &&
         OwesReasons(round, pod) && ready != nullptr && ready->status == said &&
         pod.pod->meta.created >= ready->last_transition_time;
}

// Pods whose first start runs, or has ended and is not counted yet; the first ready one first.
std::vector<FirstStart> FindStarts(const Round& round) {
  std::vector<FirstStart> out;
  for (const PodView& pod : round.pods) {
    if (!(pod.ours || IsLeftAlone(round, pod)) || pod.counted || pod.node < 0 ||
        pod.container == nullptr) {
      continue;
    }
    const size_t index = static_cast<size_t>(pod.node);
    const NodeState& node = round.nodes[index];
    FirstStart start{.pod = &pod,
                     .node = index,
                     .started = pod.container->started_at,
                     .ready = ReadyAt(round, pod),
                     .evidence = EvidenceOf(node, pod.pod->meta.uid)};
    if (start.started != WallTime{}) {
      out.push_back(start);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FirstStart& a, const FirstStart& b) { return a.ready < b.ready; });
  return out;
}

bool IsBuilder(const Round& round, const PodView& pod) {
  const auto& builders = round.out.status.builders;
  return pod.of_job || std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
           return each.pod_uid == pod.pod->meta.uid && !each.node.empty();
         });
}

// A pod that started before its node had the bundle could not have hit.
bool HadBundle(const Round& round, const FirstStart& start) {
  const NodeState& node = round.nodes[start.node];
  const LiveKey* key = FindKey(round, node.target, start.pod->factors);
  const api::BundleStatus* bundle = key == nullptr ? nullptr : BundleFor(round, *key);
  return bundle != nullptr && bundle->published_time < start.started &&
         IsActive(node, bundle->digest);
}

StartResult Judge(const Round& round, const FirstStart& start) {
  if (IsBuilder(round, *start.pod)) {
    return StartResult::kBuilder;
  }
  if (!start.pod->ours) {
    return StartResult::kCold;
  }
  if (start.evidence == nullptr || start.pod->container->restarts > 0) {
    return StartResult::kUnknown;
  }
  const bool missed = start.evidence->result == StartResult::kMiss;
  return missed && !HadBundle(round, start) ? StartResult::kCold : start.evidence->result;
}

StartSample Measure(const Round& round, const FirstStart& start) {
  const PodView& pod = *start.pod;
  const NodeState& node = round.nodes[start.node];
  const LiveKey* key = FindKey(round, node.target, pod.factors);
  StartSample out{
      .pod_uid = pod.pod->meta.uid,
      .pod = pod.pod->meta.name,
      .node = pod.pod->node,
      .key = key == nullptr ? std::string() : key->key,
      .gpu_type = node.cache == nullptr ? std::string() : node.cache->status.node.gpu_type,
      .result = Judge(round, start),
      .hold_seconds = api::gate::NotedHoldSeconds(*pod.pod)};
  // Without a probe Ready says nothing about the engine, and after a restart it is not the first.
  if (round.pod_template.has_readiness_probe && pod.container->restarts == 0) {
    out.start_seconds =
        std::max(0.0, std::chrono::duration<double>(start.ready - start.started).count());
  }
  out.compile_seconds = start.evidence == nullptr ? 0 : start.evidence->compile_seconds;
  out.saved_seconds = NetSavedSeconds(round.out.status, out);
  return out;
}

void Observe(Round& round, const FirstStart& start) {
  auto& windows = round.windows[start.node];
  if (windows.size() < kWindowsMax) {
    windows.push_back({.pod_uid = start.pod->pod->meta.uid,
                       .warmup_uid = round.uid(),
                       .run_as = start.pod->run_as,
                       .started_at = start.started,
                       .ready_at = start.ready});
  }
}

std::string WhyLeftAlone(const Round& round, const PodView& pod) {
  std::string why = render::WhyLeftAlone(*pod.pod->object, round.in.settings.root);
  if (!why.empty()) {
    return why;
  }
  if (pod.of_another) {
    const std::string_view value = pod.pod->meta.annotations.find(api::kWarmupAnnotation)->second;
    return fmt::format("annotation {} says \"{}\"", api::kWarmupAnnotation,
                       value.substr(0, kQuotedBytesMax));
  }
  if (!round.acceptance.inject) {
    return fmt::format("{}: {}", round.acceptance.ready.reason, round.acceptance.ready.message);
  }
  return "it was created in the moment before the API server had seen the warmup";
}

void Count(Round& round, const FirstStart& start) {
  api::Starts& starts = round.out.status.starts;
  const StartSample sample = Measure(round, start);
  AddSample(starts, sample);
  starts.counted.push_back(sample.pod_uid);
  if (starts.counted.size() > kCountedMax) {
    starts.counted.erase(starts.counted.begin());
  }
  round.out.starts_counted.push_back(sample);
  if (!start.pod->ours && !start.pod->of_job) {
    round.out.events.push_back(
        AboutPod(*start.pod->pod, api::reason::kLeftAlone,
                 "started without the cache: " + WhyLeftAlone(round, *start.pod)));
  }
}

// Notes on each pod what was counted: from then on the pod itself says so, however full the ring.
void Annotate(Round& round) {
  for (const StartSample& sample : round.out.status.starts.recent) {
    const PodView* pod = FindPod(round, sample.pod_uid);
    if (pod == nullptr || pod->pod->meta.annotations.contains(api::kStartAnnotation)) {
      continue;
    }
    round.out.annotations.push_back(
        {.ns = pod->pod->meta.ns,
         .pod = pod->pod->meta.name,
         .uid = pod->pod->meta.uid,
         .key = std::string(api::kStartAnnotation),
         .value = DescribeSample(
             sample, pod->ours || pod->of_job ? std::string() : WhyLeftAlone(round, *pod))});
  }
}

// A revision is proven once one of its pods was seen to hit, or was captured.
void FindProven(Round& round) {
  const api::WarmupStatus& status = round.out.status;
  for (const PodView& pod : round.pods) {
    const bool hit_now = std::any_of(
        round.out.starts_counted.begin(), round.out.starts_counted.end(), [&](const auto& each) {
          return each.pod_uid == pod.pod->meta.uid && each.result == StartResult::kHit;
        });
    if (hit_now || pod.counted == StartResult::kHit) {
      round.proven_revisions.insert(pod.revision);
    }
  }
  for (const api::BuilderStatus& builder : status.builders) {
    if (builder.state == api::BuilderState::kCaptured && builder.job.empty()) {
      round.proven_revisions.insert(builder.revision);
    }
  }
  if (status.injection) {
    const auto& warm = status.injection->warm_revisions;
    round.proven_revisions.insert(warm.begin(), warm.end());
  }
}

}  // namespace

void DecideStarts(Round& round) {
  if (round.deleting()) {
    return;
  }
  api::Starts& starts = round.out.status.starts;
  if (starts.since == WallTime{} && round.acceptance.inject) {
    starts.since = round.stamp();
  }
  for (const FirstStart& start : FindStarts(round)) {
    const bool ended = start.ready != WallTime{};
    const bool judged = start.evidence != nullptr || !start.pod->ours ||
                        start.pod->container->restarts > 0 ||
                        round.in.now >= start.ready + kEvidenceWait;
    if (ended && judged && round.out.starts_counted.size() < kCountedPerRound) {
      Count(round, start);
      continue;
    }
    if (ended) {
      WakeAt(round, judged ? round.in.now : start.ready + kEvidenceWait);
    } else {
      AwaitReady(round, *start.pod);
    }
    if (start.pod->ours && start.pod->container->restarts == 0) {
      Observe(round, start);
    }
  }
  Annotate(round);
  FindProven(round);
}

}  // namespace cachewarm::plan
