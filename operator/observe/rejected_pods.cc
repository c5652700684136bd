// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/rejected_pods.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/api/condition.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/observe/owners.h"
#include "operator/observe/workload.h"
#include "operator/workloads/shape.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using Pods = std::vector<std::shared_ptr<const api::Pod>>;
using Owner = std::pair<std::string, std::string>;  // kind, name

bool TemplateHasHostPath(const Json& workload) {
  const Json* pod_template = workloads::ShapeOf(workload).pod_template;
  if (pod_template == nullptr) {
    return false;
  }
  const Json& volumes = codec::ListAt(*pod_template, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), [](const Json& volume) {
    return volume.is_object() && volume.contains("hostPath");
  });
}

bool MentionsCachewarm(const std::string& message, std::string_view root) {
  const std::array<std::string, 4> names = {fmt::format("\"{}\"", api::kVolume),
                                            std::string(api::kSchedulingGate),
                                            std::string(api::kMountPath), std::string(root)};
  return std::any_of(names.begin(), names.end(), [&](const std::string& text) {
    return message.find(text) != std::string::npos;
  });
}

model::CreateFailure FromCondition(const Json& workload, std::string_view root) {
  model::CreateFailure failure;
  const bool own_host_path = TemplateHasHostPath(workload);
  for (const Json& condition : codec::ListAt(workload, {"status", "conditions"})) {
    const std::string message = codec::TextAt(condition, {"message"});
    const bool is_relevant = MentionsCachewarm(message, root) ||
                             (!own_host_path && message.find("hostPath") != std::string::npos);
    if (codec::TextAt(condition, {"type"}) != "ReplicaFailure" ||
        codec::TextAt(condition, {"status"}) != "True" || !is_relevant) {
      continue;
    }
    const auto time = ParseTime(codec::TextAt(condition, {"lastTransitionTime"}));
    failure = {.time = time.value_or(WallTime{}), .message = message};
  }
  return failure;
}

// Returns when the event occurred last. client-go's recorders write this time to one of three
// fields (events.k8s.io/v1, k8s.io/api).
WallTime LastSeen(const Json& event) {
  WallTime last{};
  for (const auto& path :
       {codec::JsonPath{"series", "lastObservedTime"}, codec::JsonPath{"deprecatedLastTimestamp"},
        codec::JsonPath{"eventTime"}}) {
    last = std::max(last, ParseTime(codec::TextAt(event, path)).value_or(WallTime{}));
  }
  return last;
}

// Returns workloads whose template has the warmup's labels, even if they have no pods yet. Examples
// are a Job of the warmup's CronJob, a StatefulSet of its LeaderWorkerSet, and the Deployment of a
// KServe service.
std::vector<kube::Object> FindOwnersByTemplate(const ClusterCache& cluster,
                                               const model::Snapshot& snapshot) {
  const std::map<std::string, std::string>& labels = snapshot.workload.selector;
  return labels.empty() ? std::vector<kube::Object>()
                        : FindOwners(cluster, snapshot.warmup.ns, labels);
}

// Returns the owners whose events are read: the workload itself, the owners of its pods, and
// `by_template`.
std::set<Owner> FindPodOwners(const model::Snapshot& snapshot,
                              const std::vector<kube::Object>& by_template) {
  std::set<Owner> out;
  if (const auto& ref = snapshot.warmup.spec.workload_ref) {
    out.emplace(ref->kind, ref->name);
  }
  for (const auto& pod : snapshot.pods) {
    if (!pod->owner_name.empty()) {
      out.emplace(pod->owner_kind, pod->owner_name);
    }
  }
  for (const kube::Object& owner : by_template) {
    out.emplace(codec::TextAt(*owner, {"kind"}), kube::NameOf(*owner).name);
  }
  return out;
}

// Returns the FailedCreate events of the namespace, about any object, that mention cachewarm's
// volume, gate or path.
std::vector<kube::Object> FindCachewarmEvents(const ClusterCache& cluster, const std::string& ns,
                                              std::string_view root) {
  std::vector<kube::Object> out;
  for (const kube::CachedObjectPtr& cached : cluster.failed_creates.store().ListNamespace(ns)) {
    if (MentionsCachewarm(std::string(cached->value().TextAt({"note"})), root)) {
      out.push_back(cached->Unpack());
    }
  }
  return out;
}

void KeepNewer(model::CreateFailure other, model::CreateFailure& failure) {
  if (other.time > failure.time) {
    failure = std::move(other);
  }
}

// Returns the time up to which FailedCreate events are ignored. An event remains for an hour, even
// if its cause is removed, so an event from before an allowed dry run is outdated. The limit does
// not apply to the condition ReplicaFailure, because the condition keeps the time of the first
// rejection.
WallTime IgnoreEventsBefore(const model::Snapshot& snapshot) {
  const api::Condition* ready = api::FindCondition(snapshot.warmup.status.conditions, "Ready");
  if (ready == nullptr) {
    return WallTime{};
  }
  const bool refused = ready->status == "False" && ready->reason == api::reason::kInjectionRejected;
  const bool allowed = snapshot.dry_run.injected == model::DryRunResult::kAllowed;
  return refused && allowed ? std::max(ready->last_transition_time, snapshot.dry_run.time)
                            : ready->last_transition_time;
}

}  // namespace

model::CreateFailure FindCreateFailure(const ClusterCache& cluster,
                                       const model::Snapshot& snapshot) {
  const std::string& root = snapshot.settings.root;
  const api::CacheWarmup& warmup = snapshot.warmup;
  model::CreateFailure failure;
  if (const kube::Object workload = FindReferenced(cluster, warmup); workload != nullptr) {
    failure = FromCondition(*workload, root);
  }
  const std::vector<kube::Object> events = FindCachewarmEvents(cluster, warmup.ns, root);
  const bool by_selector = snapshot.workload.kind == model::WorkloadKind::kSelector;
  if (events.empty() && !by_selector) {
    return failure;
  }
  const std::vector<kube::Object> by_template = FindOwnersByTemplate(cluster, snapshot);
  for (const kube::Object& owner : by_template) {
    KeepNewer(FromCondition(*owner, root), failure);
  }
  const std::set<Owner> owners = FindPodOwners(snapshot, by_template);
  const WallTime since = IgnoreEventsBefore(snapshot);
  for (const kube::Object& event : events) {
    const WallTime time = LastSeen(*event);
    const Owner owner{codec::TextAt(*event, {"regarding", "kind"}),
                      codec::TextAt(*event, {"regarding", "name"})};
    if (time > since && owners.contains(owner)) {
      KeepNewer({.time = time, .message = codec::TextAt(*event, {"note"})}, failure);
    }
  }
  return failure;
}

std::map<std::string, std::string> FindMountFailures(const ClusterCache& cluster, const Pods& pods,
                                                     std::string_view root) {
  std::map<std::string, std::string> out;
  for (const auto& pod : pods) {
    const bool started = std::any_of(pod->containers.begin(), pod->containers.end(),
                                     [](const auto& each) { return each.running; });
    if (started || pod->node.empty()) {
      continue;
    }
    for (const kube::CachedObjectPtr& event :
         cluster.failed_mounts.store().ByIndex(pod->meta.uid)) {
      const std::string note(event->value().TextAt({"note"}));
      if (MentionsCachewarm(note, root)) {
        out[pod->meta.uid] = note;
      }
    }
  }
  return out;
}

}  // namespace cachewarm::observe
