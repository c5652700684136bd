// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/triggers.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "operator/observe/snapshot.h"

namespace cachewarm::observe {
namespace {

// A rollout changes a pod several times within milliseconds, a node joins in several steps.
constexpr Duration kPodBurst{20};
constexpr Duration kClusterBurst{250};

const codec::Json* MemberOf(const kube::Object& object,
                            std::initializer_list<std::string_view> path) {
  return object == nullptr ? nullptr : kube::At(*object, path);
}

// True when the members below `path` differ between before and after.
bool Differs(const kube::Change& change, std::initializer_list<std::string_view> path) {
  const codec::Json* before = MemberOf(change.before, path);
  const codec::Json* after = MemberOf(change.after, path);
  if (before == nullptr || after == nullptr) {
    return before != after;
  }
  return *before != *after;
}

bool IsNewOrGone(const kube::Change& change) {
  return change.before == nullptr || change.after == nullptr;
}

bool MayConcern(const api::CacheWarmup& warmup, const std::map<std::string, std::string>& labels) {
  // Before acceptance the labels are not known: any pod of the namespace may be the first.
  if (!warmup.status.injection.has_value()) {
    return true;
  }
  return api::HasLabels(labels, warmup.status.injection->labels);
}

// The warmups named in spec.warmups of a NodeCache.
std::vector<std::string> WarmupKeysOf(const kube::Object& node_cache) {
  std::vector<std::string> keys;
  const codec::Json* entries = MemberOf(node_cache, {"spec", "warmups"});
  if (entries != nullptr && entries->is_array()) {
    for (const codec::Json& entry : *entries) {
      keys.push_back(kube::TextAt(entry, {"namespace"}) + "/" + kube::TextAt(entry, {"name"}));
    }
  }
  return keys;
}

}  // namespace

void Triggers::Attach() {
  world_.warmups.OnChange([this](const kube::Change& change) { OnWarmup(change); });
  world_.node_caches.OnChange([this](const kube::Change& change) { OnNodeCache(change); });
  world_.nodes.OnChange([this](const kube::Change& change) { OnNode(change); });
  world_.pods.OnChange([this](const kube::Change& change) { OnPod(change); });
  world_.jobs.OnChange([this](const kube::Change& change) { OnJob(change); });
  world_.OnWorkload([this](const kube::Change& change, std::string_view kind) {
    if (kind != "Job") {
      OnWorkload(change, kind);
    }
  });
  world_.namespaces.OnChange([this](const kube::Change& change) { OnNamespace(change); });
  world_.disruption_budgets.OnChange([this](const kube::Change& change) { OnBudget(change); });
  world_.failed_creates.OnChange([this](const kube::Change& change) { OnFailure(change); });
  world_.failed_mounts.OnChange([this](const kube::Change& change) { OnFailure(change); });
}

void Triggers::AddEverything() {
  AddAllWarmups(Duration(0));
  for (const kube::Object& object : world_.nodes.store().List()) {
    queues_.nodes.Add(kube::NameOf(*object).ToString());
  }
  for (const kube::Object& object : world_.node_caches.store().List()) {
    queues_.nodes.Add(kube::NameOf(*object).ToString());
    // Entries of warmups that are gone since: nobody else would name them.
    for (const std::string& key : WarmupKeysOf(object)) {
      queues_.warmups.Add(key);
    }
  }
  for (const kube::Object& object : world_.pods.store().ByIndex(kHeldIndex)) {
    queues_.held.Add(kube::NameOf(*object).ToString());
  }
}

void Triggers::OnWarmup(const kube::Change& change) {
  const kube::ObjectName name = kube::NameOf(change.object());
  queues_.warmups.Add(name.ToString());
  for (const kube::Object& node : world_.nodes.store().ByIndex(kWarmingIndex)) {
    queues_.nodes.AddAfter(kube::NameOf(*node).ToString(), kClusterBurst);
  }
  if (IsNewOrGone(change) || Differs(change, {"spec"})) {
    AddWarmupsOf(name.ns, kClusterBurst, [&](const api::CacheWarmup&) { return true; });
  }
  if (change.after == nullptr) {
    for (const kube::Object& pod : world_.pods.store().ByIndex(kHeldIndex)) {
      queues_.held.Add(kube::NameOf(*pod).ToString());
    }
  }
}

void Triggers::OnNodeCache(const kube::Change& change) {
  queues_.nodes.Add(kube::NameOf(change.object()).ToString());
  if (IsNewOrGone(change) || Differs(change, {"status", "node"})) {
    AddAllWarmups(kClusterBurst);
    return;
  }
  for (const kube::Object& side : {change.before, change.after}) {
    for (const std::string& key : WarmupKeysOf(side)) {
      queues_.warmups.AddAfter(key, kPodBurst);
    }
  }
}

void Triggers::OnNode(const kube::Change& change) {
  queues_.nodes.Add(kube::NameOf(change.object()).ToString());
  if (IsNewOrGone(change) || Differs(change, {"spec"}) || Differs(change, {"status"}) ||
      Differs(change, {"metadata", "labels"})) {
    AddAllWarmups(kClusterBurst);
  }
}

void Triggers::OnPod(const kube::Change& change) {
  const codec::Json& pod = change.object();
  const kube::ObjectName name = kube::NameOf(pod);
  const auto labels = kube::LabelsOf(pod);
  const std::vector<std::string> index = PodIndex(pod);
  if (std::find(index.begin(), index.end(), kHeldIndex) != index.end()) {
    queues_.held.Add(name.ToString());
  }
  if (const auto agent = labels.find(std::string(kAgentLabel));
      agent != labels.end() && agent->second == kAgentLabelValue) {
    AddAllWarmups(kClusterBurst);
    if (const std::string node = kube::TextAt(pod, {"spec", "nodeName"}); !node.empty()) {
      queues_.nodes.AddAfter(node, kPodBurst);
    }
  }
  if (const auto owner = labels.find(std::string(api::kBuilderWarmupLabel));
      owner != labels.end()) {
    AddByUid(owner->second, kPodBurst);
  }
  const std::string warmup = kube::TextAt(pod, {"metadata", "annotations", api::kWarmupAnnotation});
  if (!warmup.empty()) {
    // Also when no such warmup is left: its pods are then released.
    queues_.warmups.AddAfter(name.ns + "/" + warmup, kPodBurst);
  }
  AddWarmupsOf(name.ns, kPodBurst,
               [&](const api::CacheWarmup& other) { return MayConcern(other, labels); });
}

void Triggers::OnJob(const kube::Change& change) {
  const auto labels = kube::LabelsOf(change.object());
  if (const auto owner = labels.find(std::string(api::kBuilderWarmupLabel));
      owner != labels.end()) {
    AddByUid(owner->second, kPodBurst);
    return;
  }
  OnWorkload(change, "Job");
}

void Triggers::OnWorkload(const kube::Change& change, std::string_view kind) {
  const kube::ObjectName name = kube::NameOf(change.object());
  AddWarmupsOf(name.ns, kPodBurst, [&](const api::CacheWarmup& warmup) {
    const auto& ref = warmup.spec.workload_ref;
    // A Rollout may take its template from a Deployment.
    return ref.has_value() && ((ref->kind == kind && ref->name == name.name) ||
                               (kind == "Deployment" && ref->kind == "Rollout"));
  });
}

void Triggers::OnNamespace(const kube::Change& change) {
  if (IsNewOrGone(change) || Differs(change, {"metadata", "labels"})) {
    AddWarmupsOf(kube::NameOf(change.object()).name, kPodBurst,
                 [](const api::CacheWarmup&) { return true; });
  }
}

void Triggers::OnFailure(const kube::Change& change) {
  if (change.after != nullptr) {  // that an event has aged away is no news
    AddWarmupsOf(kube::NameOf(change.object()).ns, kClusterBurst,
                 [](const api::CacheWarmup&) { return true; });
  }
}

void Triggers::OnBudget(const kube::Change& change) {
  if (IsNewOrGone(change) || Differs(change, {"spec"}) || Differs(change, {"status"})) {
    AddWarmupsOf(kube::NameOf(change.object()).ns, kClusterBurst,
                 [](const api::CacheWarmup&) { return true; });
  }
}

void Triggers::AddAllWarmups(Duration delay) {
  for (const kube::Object& object : world_.warmups.store().List()) {
    queues_.warmups.AddAfter(kube::NameOf(*object).ToString(), delay);
  }
}

template <typename Predicate>
void Triggers::AddWarmupsOf(const std::string& ns, Duration delay, Predicate wants) {
  for (const auto& warmup : world_.warmup_views.ListNamespace(ns)) {
    if (wants(*warmup)) {
      queues_.warmups.AddAfter(warmup->ns + "/" + warmup->name, delay);
    }
  }
}

void Triggers::AddByUid(const std::string& warmup_uid, Duration delay) {
  for (const kube::Object& object : world_.warmups.store().List()) {
    if (kube::UidOf(*object) == warmup_uid) {
      queues_.warmups.AddAfter(kube::NameOf(*object).ToString(), delay);
    }
  }
}

}  // namespace cachewarm::observe
