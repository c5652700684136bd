// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/failures.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/api/condition.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "operator/observe/workload.h"
#include "operator/workloads/shape.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using Pods = std::vector<std::shared_ptr<const api::Pod>>;
using Owner = std::pair<std::string, std::string>;  // kind, name

bool TemplateHasHostPath(const Json& workload) {
  const Json* pod_template = workloads::ShapeOf(workload).pod_template;
  const Json* volumes =
      pod_template == nullptr ? nullptr : kube::At(*pod_template, {"spec", "volumes"});
  return volumes != nullptr && volumes->is_array() &&
         std::any_of(volumes->begin(), volumes->end(), [](const Json& volume) {
           return volume.is_object() && volume.contains("hostPath");
         });
}

bool NamesUs(const std::string& message, std::string_view root) {
  const std::array<std::string, 4> ours = {fmt::format("\"{}\"", api::kVolume),
                                           std::string(api::kSchedulingGate),
                                           std::string(api::kMountPath), std::string(root)};
  return std::any_of(ours.begin(), ours.end(), [&](const std::string& text) {
    return message.find(text) != std::string::npos;
  });
}

plan::CreateFailure FromCondition(const Json& workload, std::string_view root) {
  plan::CreateFailure failure;
  const Json* conditions = kube::At(workload, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) {
    return failure;
  }
  const bool own_host_path = TemplateHasHostPath(workload);
  for (const Json& condition : *conditions) {
    const std::string message = kube::TextAt(condition, {"message"});
    const bool ours =
        NamesUs(message, root) || (!own_host_path && message.find("hostPath") != std::string::npos);
    if (kube::TextAt(condition, {"type"}) != "ReplicaFailure" ||
        kube::TextAt(condition, {"status"}) != "True" || !ours) {
      continue;
    }
    const auto time = ParseTime(kube::TextAt(condition, {"lastTransitionTime"}));
    failure = {.time = time.value_or(WallTime{}), .message = message};
  }
  return failure;
}

// Recorders of client-go write a series to one of three fields (events.k8s.io/v1, k8s.io/api).
WallTime LastSeen(const Json& event) {
  WallTime last{};
  for (const auto& path : {std::initializer_list<std::string_view>{"series", "lastObservedTime"},
                           std::initializer_list<std::string_view>{"deprecatedLastTimestamp"},
                           std::initializer_list<std::string_view>{"eventTime"}}) {
    last = std::max(last, ParseTime(kube::TextAt(event, path)).value_or(WallTime{}));
  }
  return last;
}

// Whoever makes the pods: the workload itself, and for pods of any owner those owners.
std::set<Owner> Makers(const api::CacheWarmup& warmup, const Pods& pods) {
  std::set<Owner> out;
  if (const auto& ref = warmup.spec.workload_ref) {
    out.emplace(ref->kind, ref->name);
  }
  for (const auto& pod : pods) {
    if (!pod->meta.owner_name.empty()) {
      out.emplace(pod->meta.owner_kind, pod->meta.owner_name);
    }
  }
  return out;
}

WallTime ReadySince(const api::CacheWarmup& warmup) {
  const api::Condition* ready = api::FindCondition(warmup.status.conditions, "Ready");
  return ready == nullptr ? WallTime{} : ready->last_transition_time;
}

}  // namespace

plan::CreateFailure FindCreateFailure(const World& world, const api::CacheWarmup& warmup,
                                      const Pods& pods, std::string_view root) {
  plan::CreateFailure failure;
  if (const kube::Object workload = FindReferenced(world, warmup); workload != nullptr) {
    failure = FromCondition(*workload, root);
  }
  const std::set<Owner> makers = Makers(warmup, pods);
  const WallTime since = ReadySince(warmup);
  for (const kube::Kept& kept : world.failed_creates.store().ListNamespace(warmup.ns)) {
    if (!NamesUs(std::string(kept->value().TextAt({"note"})), root)) {
      continue;
    }
    const kube::Object event = kept->Unpack();
    const std::string note = kube::TextAt(*event, {"note"});
    const WallTime time = LastSeen(*event);
    const Owner maker{kube::TextAt(*event, {"regarding", "kind"}),
                      kube::TextAt(*event, {"regarding", "name"})};
    if (time > since && time > failure.time && makers.contains(maker)) {
      failure = {.time = time, .message = note};
    }
  }
  return failure;
}

std::map<std::string, std::string> FindMountFailures(const World& world, const Pods& pods,
                                                     std::string_view root) {
  std::map<std::string, std::string> out;
  for (const auto& pod : pods) {
    const bool started = std::any_of(pod->containers.begin(), pod->containers.end(),
                                     [](const auto& each) { return each.running; });
    if (started || pod->node.empty()) {
      continue;
    }
    for (const kube::Kept& event : world.failed_mounts.store().ByIndex(pod->meta.uid)) {
      const std::string note(event->value().TextAt({"note"}));
      if (NamesUs(note, root)) {
        out[pod->meta.uid] = note;
      }
    }
  }
  return out;
}

}  // namespace cachewarm::observe
