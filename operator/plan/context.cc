// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/context.h"

#include <algorithm>

#include "lib/api/names.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kMessageBytesMax = 1024;
constexpr Duration kReadyWithoutProbe = std::chrono::seconds(60);

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

const LiveKey* FindKey(const Context& context, int target, const PodFactors& factors) {
  for (const LiveKey& key : context.keys) {
    if (target >= 0 && key.target == static_cast<size_t>(target) &&
        key.factors.image == factors.image && key.factors.devices == factors.devices &&
        key.factors.container == factors.container) {
      return &key;
    }
  }
  return nullptr;
}

const PodView* FindPod(const Context& context, std::string_view uid) {
  const auto found = std::find_if(context.pods.begin(), context.pods.end(),
                                  [&](const PodView& pod) { return pod.pod->meta.uid == uid; });
  return found == context.pods.end() ? nullptr : &*found;
}

api::BuilderStatus* FindBuilder(std::vector<api::BuilderStatus>& builders, std::string_view key) {
  for (api::BuilderStatus& builder : builders) {
    if (builder.key == key) {
      return &builder;
    }
  }
  return nullptr;
}

const api::BuilderStatus* FindBuilder(const std::vector<api::BuilderStatus>& builders,
                                      std::string_view key) {
  for (const api::BuilderStatus& builder : builders) {
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

bool NeedsProof(const api::WarmupSpec& spec) {
  return spec.compile.proof == api::Proof::kEngine;
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

const api::NodeBundle* ServingBundle(const NodeState& node, const api::BundleStatus& bundle) {
  const api::NodeBundle* own = ReportedBundle(node, bundle.digest);
  if (node.reported == nullptr || (own != nullptr && own->state == api::BundleState::kActive)) {
    return own;
  }
  const auto& reported = node.reported->bundles;
  const auto older = std::find_if(reported.begin(), reported.end(), [&](const auto& each) {
    return each.state == api::BundleState::kActive &&
           std::find(bundle.extends.begin(), bundle.extends.end(), each.digest.ToString()) !=
               bundle.extends.end();
  });
  return older == reported.end() ? own : &*older;
}

bool IsServed(const NodeState& node, const api::BundleStatus& bundle) {
  const api::NodeBundle* serving = ServingBundle(node, bundle);
  return serving != nullptr && serving->state == api::BundleState::kActive;
}

bool Fits(const Context& context, const Reserved& reserved, size_t index, const PodShape& shape) {
  const NodeState& node = context.nodes[index];
  const api::Node& object = *node.view->node;
  if (!node.ready || object.os != "linux" || !Selects(shape, object) ||
      !Tolerates(shape, object, Taints::kAll)) {
    return false;
  }
  const auto taken = reserved.find(index);
  if (taken == reserved.end()) {
    return Covers(node.view->free, shape.requests);
  }
  Resources left = node.view->free;
  for (auto& [name, amount] : left) {
    const auto part = taken->second.find(name);
    amount -= part == taken->second.end() ? 0 : part->second;
  }
  return Covers(left, shape.requests);
}

void Reserve(Reserved& reserved, size_t node, const PodShape& shape) {
  for (const auto& [name, amount] : shape.requests) {
    reserved[node][name] += amount;
  }
}

std::string HostPath(const Context& context, std::string_view run_as) {
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

bool HasKey(const Context& context, const PodView& pod, std::string_view key) {
  if (pod.node < 0) {
    return false;
  }
  const LiveKey* own =
      FindKey(context, context.nodes[static_cast<size_t>(pod.node)].target, pod.factors);
  return own != nullptr && own->key == key;
}

std::vector<const PodView*> RunningPods(const Context& context, std::string_view key) {
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

WallTime ReadyAt(const Context& context, const PodView& view) {
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

bool WasReady(const Context& context, const PodView& view) {
  const bool says = view.pod->ready || view.pod->containers_ready;
  const bool ended_well =
      view.container != nullptr && view.container->terminated && view.container->exit_code == 0;
  return view.counted.has_value() || ended_well ||
         (says && context.pod_template.has_readiness_probe) || ReadyAt(context, view) != WallTime{};
}

std::optional<WallTime> ReadyLaterAt(const Context& context, const PodView& view) {
  const bool later = Runs(view) && !context.pod_template.has_readiness_probe &&
                     AssumedReady(view) > context.in.now;
  return later ? std::optional(AssumedReady(view)) : std::nullopt;
}

}  // namespace cachewarm::plan
