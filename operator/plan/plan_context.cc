// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/plan_context.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kMessageBytesMax = 1024;
constexpr Duration kReadyWithoutProbe = std::chrono::seconds(60);

// Returns the key factors of a bundle. status.bundles does not store the device count and the
// container. They are taken from the template, or from another key in use, if that results in the
// bundle's key. Otherwise they are -1 and "", so that the bundle can only be a seed.
api::KeyFactors FactorsOf(const PlanContext& context, const api::BundleStatus& bundle) {
  api::KeyFactors factors{.gpu_type = bundle.gpu_type,
                          .cpu_class = bundle.cpu_class,
                          .image = bundle.image,
                          .devices = context.pod_template.factors.devices,
                          .container = context.pod_template.factors.container};
  const auto key = fingerprint::KeyOf(factors);
  if (!key.ok() || *key != bundle.key) {
    for (const LiveKey& live : context.keys) {
      if (live.key == bundle.key) {
        return live.factors;
      }
    }
    factors.devices = -1;
    factors.container.clear();
  }
  return factors;
}

}  // namespace

std::string TruncateMessage(std::string text) {
  if (text.size() <= kMessageBytesMax) {
    return text;
  }
  size_t end = kMessageBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;  // keep UTF-8 characters whole
  }
  text.resize(end);
  return text;
}

void RequeueAt(PlanContext& context, WallTime when) {
  const Duration wait = std::max(when - context.in.now, Duration{0});
  auto& requeue = context.out.requeue_after;
  requeue = requeue ? std::min(*requeue, wait) : wait;
}

void RecordEvent(PlanContext& context, bool warning, std::string_view reason, std::string note) {
  const api::CacheWarmup& warmup = context.in.warmup;
  context.out.events.push_back({.regarding = {.api_version = std::string(api::kApiVersion),
                                              .kind = "CacheWarmup",
                                              .ns = warmup.ns,
                                              .name = warmup.name,
                                              .uid = warmup.uid},
                                .warning = warning,
                                .reason = std::string(reason),
                                .action = "Plan",
                                .note = std::move(note)});
}

EventRequest MakePodEvent(const api::Pod& pod, std::string_view reason, std::string note) {
  return {.regarding = {.api_version = "v1",
                        .kind = "Pod",
                        .ns = pod.meta.ns,
                        .name = pod.meta.name,
                        .uid = pod.meta.uid},
          .warning = false,
          .reason = std::string(reason),
          .action = "Gate",
          .note = std::move(note)};
}

std::vector<fingerprint::BundleFacts> BundlesOf(const PlanContext& context) {
  std::vector<fingerprint::BundleFacts> out;
  for (const api::BundleStatus& bundle : context.out.status.bundles) {
    out.push_back({.factors = FactorsOf(context, bundle),
                   .native_host_code = bundle.native,
                   .published = bundle.published_time,
                   .digest = bundle.digest.ToString()});
  }
  return out;
}

const api::BundleStatus* BundleFor(const PlanContext& context, const LiveKey& key) {
  auto known = context.serving.find(key.key);
  if (known == context.serving.end()) {
    const auto facts = BundlesOf(context);
    const fingerprint::BundleFacts* chosen = fingerprint::ChooseBundle(facts, key.factors);
    const int index = chosen == nullptr ? -1 : static_cast<int>(chosen - facts.data());
    known = context.serving.emplace(key.key, index).first;
  }
  return known->second < 0 ? nullptr
                           : &context.out.status.bundles[static_cast<size_t>(known->second)];
}

const api::SuspendedBundle* FindSuspended(const PlanContext& context, const Digest& digest) {
  for (const api::SuspendedBundle& bundle : context.out.status.suspended_bundles) {
    if (bundle.digest == digest) {
      return &bundle;
    }
  }
  return nullptr;
}

const api::SuspendedBundle* LastSuspendedFor(const PlanContext& context, const LiveKey& key) {
  const api::SuspendedBundle* last = nullptr;
  for (const api::SuspendedBundle& bundle : context.out.status.suspended_bundles) {
    // A bundle without native host code also served the keys of other CPU classes.
    const bool served =
        bundle.key == key.key || (!bundle.native && bundle.gpu_type == key.factors.gpu_type &&
                                  bundle.image == key.factors.image);
    if (served && (last == nullptr || last->suspended_time <= bundle.suspended_time)) {
      last = &bundle;
    }
  }
  return last;
}

bool IsWithoutSuspendedBundle(const PlanContext& context, const LiveKey& key) {
  return BundleFor(context, key) == nullptr && LastSuspendedFor(context, key) != nullptr;
}

const LiveKey* FindKey(const PlanContext& context, int target, const PodFactors& factors) {
  for (const LiveKey& key : context.keys) {
    if (target >= 0 && key.target == static_cast<size_t>(target) &&
        key.factors.image == factors.image && key.factors.devices == factors.devices &&
        key.factors.container == factors.container) {
      return &key;
    }
  }
  return nullptr;
}

const PodView* FindPod(const PlanContext& context, std::string_view uid) {
  const auto found = std::find_if(context.pods.begin(), context.pods.end(),
                                  [&](const PodView& pod) { return pod.pod->meta.uid == uid; });
  return found == context.pods.end() ? nullptr : &*found;
}

api::BuilderStatus* FindBuilder(api::WarmupStatus& status, std::string_view key) {
  for (api::BuilderStatus& builder : status.builders) {
    if (builder.key == key) {
      return &builder;
    }
  }
  return nullptr;
}

const api::BuilderStatus* FindBuilder(const api::WarmupStatus& status, std::string_view key) {
  for (const api::BuilderStatus& builder : status.builders) {
    if (builder.key == key) {
      return &builder;
    }
  }
  return nullptr;
}

bool IsRunning(const api::BuilderStatus& builder) {
  return builder.state == api::BuilderState::kElected ||
         builder.state == api::BuilderState::kCapturing ||
         builder.state == api::BuilderState::kProving;
}

bool NeedsProof(const PlanContext& context) {
  return context.in.warmup.spec.compile.proof == api::Proof::kEngine;
}

bool IsExhausted(const PlanContext& context, const LiveKey& key) {
  const api::BuilderStatus* last = FindBuilder(context.out.status, key.key);
  return BundleFor(context, key) == nullptr && last != nullptr &&
         last->state == api::BuilderState::kFailed && last->reason != api::reason::kBuilderLost &&
         last->attempt > context.in.warmup.spec.compile.backoff_limit;
}

const api::NodeBundle* ReportedBundle(const NodeState& node, const Digest& digest) {
  if (node.reported != nullptr && !digest.empty()) {
    for (const api::NodeBundle& bundle : node.reported->bundles) {
      if (bundle.digest == digest) {
        return &bundle;
      }
    }
  }
  return nullptr;
}

bool IsActive(const NodeState& node, const Digest& digest) {
  const api::NodeBundle* bundle = ReportedBundle(node, digest);
  return bundle != nullptr && bundle->state == api::BundleState::kActive;
}

bool IsWarm(const PlanContext& context, const NodeState& node, const PodFactors& factors) {
  const LiveKey* key = FindKey(context, node.target, factors);
  const api::BundleStatus* bundle = key == nullptr ? nullptr : BundleFor(context, *key);
  return bundle != nullptr && IsActive(node, bundle->digest);
}

bool Fits(const PlanContext& context, size_t index, const PodShape& shape, Taints taints) {
  const NodeState& node = context.nodes[index];
  const api::Node& object = *node.view->node;
  if (!node.ready || object.os != "linux" || !Selects(shape, object) ||
      !Tolerates(shape, object, taints)) {
    return false;
  }
  const auto taken = context.reserved.find(index);
  if (taken == context.reserved.end()) {
    return Covers(node.view->free, shape.requests);
  }
  Resources left = node.view->free;
  for (auto& [name, amount] : left) {
    const auto part = taken->second.find(name);
    amount -= part == taken->second.end() ? 0 : part->second;
  }
  return Covers(left, shape.requests);
}

void Reserve(PlanContext& context, size_t node, const PodShape& shape) {
  for (const auto& [name, amount] : shape.requests) {
    context.reserved[node][name] += amount;
  }
}

std::string HostPath(const PlanContext& context, std::string_view run_as) {
  const api::CacheWarmup& warmup = context.in.warmup;
  return context.in.settings.root + "/" +
         api::CachePath(warmup.ns, warmup.name, warmup.uid, run_as);
}

namespace {

bool Runs(const PodView& view) {
  return view.container != nullptr && view.container->running &&
         view.container->started_time != WallTime{};
}

// Returns when a container without a readiness probe counts as ready. The container must have
// started.
WallTime AssumedReady(const PodView& view) {
  return view.container->started_time + kReadyWithoutProbe;
}

}  // namespace

bool HasKey(const PlanContext& context, const PodView& pod, std::string_view key) {
  if (pod.node < 0) {
    return false;
  }
  const LiveKey* own =
      FindKey(context, context.nodes[static_cast<size_t>(pod.node)].target, pod.factors);
  return own != nullptr && own->key == key;
}

std::vector<const PodView*> RunningPods(const PlanContext& context, std::string_view key) {
  std::vector<const PodView*> out;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.of_job && !pod.finished && !pod.pod->meta.deleting && Runs(pod) &&
        HasKey(context, pod, key)) {
      out.push_back(&pod);
    }
  }
  SortByStart(out);
  return out;
}

void SortByStart(std::vector<const PodView*>& pods) {
  std::sort(pods.begin(), pods.end(), [](const PodView* a, const PodView* b) {
    return std::pair(a->container->started_time, std::string_view(a->pod->meta.uid)) <
           std::pair(b->container->started_time, std::string_view(b->pod->meta.uid));
  });
}

bool HasStarted(const PodView& pod) {
  return pod.container != nullptr &&
         (pod.container->running || pod.container->terminated || pod.container->restarts > 0);
}

bool HasSucceeded(const PodView& pod) {
  return pod.runs_to_completion && pod.container != nullptr && pod.container->terminated &&
         pod.container->exit_code == 0;
}

int TerminationCount(const api::ContainerStatus& container) {
  const bool ended_now =
      container.terminated || (!container.running && !container.message.empty() &&
                               container.message.find("exit ") != std::string::npos);
  return container.restarts + (ended_now ? 1 : 0);
}

WallTime ReadyAt(const PlanContext& context, const PodView& view) {
  const api::Pod& pod = *view.pod;
  if (view.container == nullptr) {
    return {};
  }
  // Pods of a Job or CronJob count as ready only when they exit with 0. Other pods that run to
  // completion count as ready earlier, because they may run for days. So do pods of builder Jobs,
  // which only have to complete the cache.
  const bool is_to_end = RunsToCompletion(context.in.workload.kind) && !view.of_job;
  if (HasSucceeded(view)) {
    const bool by_its_end = is_to_end || context.pod_template.has_readiness_probe;
    const WallTime ended = view.container->ended_time;
    return by_its_end ? ended : std::min(ended, AssumedReady(view));
  }
  if (is_to_end || !Runs(view)) {
    return {};
  }
  if (!context.pod_template.has_readiness_probe) {
    const WallTime assumed = AssumedReady(view);
    return pod.containers_ready && assumed <= context.in.now ? assumed : WallTime{};
  }
  if (view.of_job) {
    return pod.containers_ready ? pod.containers_ready_time : WallTime{};
  }
  return pod.ready ? pod.ready_time : WallTime{};
}

bool WasReady(const PlanContext& context, const PodView& view) {
  const bool says = view.pod->ready || view.pod->containers_ready;
  const bool ended_well =
      view.container != nullptr && view.container->terminated && view.container->exit_code == 0;
  return view.counted.has_value() || ended_well ||
         (says && context.pod_template.has_readiness_probe) || ReadyAt(context, view) != WallTime{};
}

void RequeueWhenReady(PlanContext& context, const PodView& view) {
  if (Runs(view) && !context.pod_template.has_readiness_probe &&
      AssumedReady(view) > context.in.now) {
    RequeueAt(context, AssumedReady(view));
  }
}

}  // namespace cachewarm::plan
