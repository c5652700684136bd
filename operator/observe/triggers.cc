// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/triggers.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/model/pod_groups.h"
#include "operator/observe/observe_warmup.h"
#include "operator/workloads/shape.h"

namespace cachewarm::observe {
namespace {

// Delays that combine several changes into one reconcile. A rollout changes a pod several times
// within milliseconds, and a node joins in several steps.
constexpr Duration kPodBurst = StormLimiter::kPodBurst;
constexpr Duration kClusterBurst{250};

const codec::Json* MemberOf(const kube::Object& object, codec::JsonPath path) {
  return object == nullptr ? nullptr : codec::At(*object, path);
}

// Returns true if the object's members at and below `path` differ before and after the change.
bool Differs(const kube::Change& change, codec::JsonPath path) {
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

bool MayAffect(const api::CacheWarmup& warmup, const api::Labels& labels) {
  // Before the warmup is accepted, its labels are unknown, so any pod of the namespace may be its
  // first pod.
  if (!warmup.status.injection.has_value()) {
    return true;
  }
  return api::HasLabels(labels, warmup.status.injection->labels);
}

// Other products have a component named agent too.
bool IsAgent(const api::Labels& labels) {
  return api::HasLabels(labels,
                        {{std::string(kAgentLabel), std::string(kAgentLabelValue)},
                         {std::string(kAgentNameLabel), std::string(kAgentNameLabelValue)}});
}

using Entries = std::map<std::string, const codec::Json*>;

// Returns the items of the list at `path` in a NodeCache, each under the value of its member `key`.
Entries EntriesOf(const kube::Object& node_cache, codec::JsonPath path, std::string_view key) {
  Entries entries;
  if (node_cache != nullptr) {
    for (const codec::Json& entry : codec::ListAt(*node_cache, path)) {
      entries[codec::TextAt(entry, {key})] = &entry;
    }
  }
  return entries;
}

bool IsSame(const Entries& before, const Entries& after, const std::string& key) {
  const auto a = before.find(key);
  const auto b = after.find(key);
  return a == before.end() || b == after.end() ? (a == before.end()) == (b == after.end())
                                               : *a->second == *b->second;
}

// A list that exists in both spec and status of a NodeCache.
struct SharedList {
  std::string_view name;
  std::string_view key;     // name of the member that identifies an item
  std::string_view warmup;  // name of the member that contains the warmup's uid; only in spec items
};
constexpr std::array<SharedList, 3> kSharedLists = {
    {{.name = "warmups", .key = "uid", .warmup = "uid"},
     {.name = "captures", .key = "id", .warmup = "warmupUID"},
     {.name = "starts", .key = "podUID", .warmup = "warmupUID"}}};

// Returns the uids of the warmups affected by a change of a NodeCache: usually one of the warmups
// on the node, and none if only the heartbeat time changed.
std::set<std::string> AffectedWarmups(const kube::Change& change) {
  std::set<std::string> uids;
  for (const SharedList& list : kSharedLists) {
    const Entries spec_before = EntriesOf(change.before, {"spec", list.name}, list.key);
    const Entries spec_after = EntriesOf(change.after, {"spec", list.name}, list.key);
    const Entries status_before = EntriesOf(change.before, {"status", list.name}, list.key);
    const Entries status_after = EntriesOf(change.after, {"status", list.name}, list.key);
    for (const Entries* spec : {&spec_before, &spec_after}) {
      for (const auto& [key, entry] : *spec) {
        if (!IsSame(spec_before, spec_after, key) || !IsSame(status_before, status_after, key)) {
          uids.insert(codec::TextAt(*entry, {list.warmup}));
        }
      }
    }
  }
  return uids;
}

// Returns the "ns/name" that spec.warmups of a NodeCache gives for the warmup `uid`, which may have
// been deleted; "" if spec.warmups does not list the warmup.
std::string KeyOf(const kube::Object& node_cache, const std::string& uid) {
  const Entries entries = EntriesOf(node_cache, {"spec", "warmups"}, "uid");
  const auto found = entries.find(uid);
  return found == entries.end() ? std::string()
                                : codec::TextAt(*found->second, {"namespace"}) + "/" +
                                      codec::TextAt(*found->second, {"name"});
}

// Returns the node facts that decisions read: all but the disk usage, which changes with every
// report.
codec::Json FactsOf(const kube::Object& node_cache) {
  const codec::Json* facts = MemberOf(node_cache, {"status", "node"});
  codec::Json out = facts == nullptr ? codec::Json() : *facts;
  if (out.is_object() && out.contains("root") && out["root"].is_object()) {
    for (const char* amount : {"usedBytes", "freeBytes", "evictableBytes", "evictedBytes"}) {
      out["root"].erase(amount);
    }
  }
  return out;
}

}  // namespace

void Triggers::Attach() {
  cluster_.warmups.OnChange([this](const kube::Change& change) { OnWarmup(change); });
  cluster_.node_caches.OnChange([this](const kube::Change& change) { OnNodeCache(change); });
  cluster_.nodes.OnChange([this](const kube::Change& change) { OnNode(change); });
  cluster_.pods.OnChange([this](const kube::Change& change) { OnPod(change); });
  cluster_.jobs.OnChange([this](const kube::Change& change) { OnJob(change); });
  cluster_.OnWorkload([this](const kube::Change& change, std::string_view kind) {
    if (kind != "Job") {
      OnWorkload(change, kind);
    }
  });
  cluster_.namespaces.OnChange([this](const kube::Change& change) { OnNamespace(change); });
  cluster_.disruption_budgets.OnChange([this](const kube::Change& change) { OnBudget(change); });
  cluster_.resource_slices.OnChange([this](const kube::Change& change) { OnSlice(change); });
  cluster_.failed_creates.OnChange([this](const kube::Change& change) { OnFailure(change); });
  cluster_.failed_mounts.OnChange([this](const kube::Change& change) { OnFailure(change); });
}

void Triggers::AddEverything() {
  AddAllWarmups(Duration(0));
  for (const kube::CachedObjectPtr& object : cluster_.nodes.store().List()) {
    queues_.nodes.Add(object->name().ToString());
  }
  for (const kube::CachedObjectPtr& object : cluster_.node_caches.store().List()) {
    queues_.nodes.Add(object->name().ToString());
  }
  // Queue deleted warmups that NodeCaches still list, so that their entries are removed. No other
  // trigger would queue these warmups.
  for (const NamedWarmup& warmup : cluster_.node_cache_views.Named()) {
    queues_.warmups.Add(warmup.ns + "/" + warmup.name);
  }
  AddHeldPods();
}

void Triggers::AddHeldPods() {
  for (const kube::CachedObjectPtr& pod : cluster_.pods.store().ByIndex(kHeldIndex)) {
    queues_.held.Add(pod->name().ToString());
  }
}

void Triggers::OnWarmup(const kube::Change& change) {
  const kube::ObjectName name = kube::NameOf(change.object());
  queues_.warmups.Add(name.ToString());
  for (const kube::CachedObjectPtr& node : cluster_.nodes.store().ByIndex(kWarmingIndex)) {
    queues_.nodes.AddAfter(node->name().ToString(), kClusterBurst);
  }
  if (IsNewOrGone(change) || Differs(change, {"spec"})) {
    AddWarmupsOf(name.ns, kClusterBurst, [&](const api::CacheWarmup&) { return true; });
  }
  if (change.after == nullptr) {
    AddHeldPods();
  }
}

void Triggers::OnNodeCache(const kube::Change& change) {
  queues_.nodes.Add(kube::NameOf(change.object()).ToString());
  if (IsNewOrGone(change) || Differs(change, {"metadata", "ownerReferences"}) ||
      FactsOf(change.before) != FactsOf(change.after)) {
    AddAllWarmups(kClusterBurst);
    return;
  }
  std::set<std::string> keys;
  for (const std::string& uid : AffectedWarmups(change)) {
    for (const kube::Object& side : {change.before, change.after}) {
      keys.insert(KeyOf(side, uid));
    }
    keys.merge(KeysByUid(uid));
  }
  keys.erase("");
  for (const std::string& key : keys) {
    queues_.warmups.AddAfter(key, kPodBurst);
  }
}

void Triggers::OnNode(const kube::Change& change) {
  queues_.nodes.Add(kube::NameOf(change.object()).ToString());
  if (IsNewOrGone(change) || Differs(change, {"spec"}) || Differs(change, {"status"}) ||
      Differs(change, {"metadata", "labels"})) {
    AddAllWarmups(kClusterBurst);
  }
}

void Triggers::OnSlice(const kube::Change& change) {
  // A driver replaces all slices of a node one after the other.
  if (const std::string node = codec::TextAt(change.object(), {"spec", "nodeName"});
      !node.empty()) {
    queues_.nodes.AddAfter(node, kClusterBurst);
  }
}

void Triggers::OnPod(const kube::Change& change) {
  const codec::Json& pod = change.object();
  const kube::ObjectName name = kube::NameOf(pod);
  const api::Labels labels = kube::LabelsOf(pod);
  if (IsHeldAtGate(pod)) {
    queues_.held.Add(name.ToString());
  } else if (change.before != nullptr && IsHeldAtGate(*change.before)) {
    AddRestOfGroup(change);
  }
  if (name.ns == agent_namespace_ && IsAgent(labels)) {
    AddAllWarmups(kClusterBurst);
    if (const std::string node = codec::TextAt(pod, {"spec", "nodeName"}); !node.empty()) {
      queues_.nodes.AddAfter(node, kPodBurst);
    }
  }
  if (const auto owner = labels.find(api::kBuilderWarmupLabel); owner != labels.end()) {
    AddByUid(std::string(owner->second), kPodBurst);
  }
  AddNodeToEvict(pod);
  std::set<std::string> keys;
  if (const std::string warmup = WarmupOf(pod); !warmup.empty()) {
    // A deleted warmup is queued too, so that its pods are released.
    keys.insert(name.ns + "/" + warmup);
  }
  for (const auto& warmup : cluster_.warmup_views.ListNamespace(name.ns)) {
    if (MayAffect(*warmup, labels)) {
      keys.insert(warmup->ns + "/" + warmup->name);
    }
  }
  for (const std::string& key : keys) {
    queues_.warmups.AddAfter(key, pod_limiter_.DelayFor(key, clock_.Monotonic()));
  }
}

// A pod that started, ended or was deleted may have been the last one that kept a tree on its node.
void Triggers::AddNodeToEvict(const codec::Json& pod) {
  const kube::ObjectName node{.name = codec::TextAt(pod, {"spec", "nodeName"})};
  if (node.name.empty() || !HasCacheVolume(pod)) {
    return;
  }
  const kube::CachedObjectPtr node_cache = cluster_.node_caches.store().Find(node);
  if (node_cache != nullptr && !node_cache->value().At({"status", "evictable"}).is_null()) {
    queues_.nodes.AddAfter(node.ToString(), kPodBurst);
  }
}

void Triggers::OnJob(const kube::Change& change) {
  const api::Labels labels = kube::LabelsOf(change.object());
  if (const auto owner = labels.find(api::kBuilderWarmupLabel); owner != labels.end()) {
    AddByUid(std::string(owner->second), kPodBurst);
    return;
  }
  OnWorkload(change, "Job");
}

void Triggers::OnWorkload(const kube::Change& change, std::string_view kind) {
  const kube::ObjectName name = kube::NameOf(change.object());
  AddWarmupsOf(name.ns, kPodBurst, [&](const api::CacheWarmup& warmup) {
    const auto& ref = warmup.spec.workload_ref;
    // Without a workloadRef, the availability constraints come from all workloads with a matching
    // template.
    if (!ref.has_value()) {
      return !warmup.spec.selector.empty() &&
             workloads::MakesPodsWith(change.object(), warmup.spec.selector);
    }
    // A Rollout may use the template of a Deployment, so the kind may differ.
    return (ref->kind == kind && ref->name == name.name) ||
           (kind == "Deployment" && ref->kind == "Rollout");
  });
}

void Triggers::OnNamespace(const kube::Change& change) {
  if (IsNewOrGone(change) || Differs(change, {"metadata", "labels"})) {
    AddWarmupsOf(kube::NameOf(change.object()).name, kPodBurst,
                 [](const api::CacheWarmup&) { return true; });
  }
}

void Triggers::OnFailure(const kube::Change& change) {
  if (change.after != nullptr) {  // an expired event changes nothing
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

void Triggers::AddRestOfGroup(const kube::Change& change) {
  if (change.after == nullptr || model::GroupOf(model::AsPod(change.after)).empty()) {
    return;
  }
  const std::string ns = kube::NameOf(*change.after).ns;
  const std::string own = WarmupOf(*change.after);
  for (const kube::CachedObjectPtr& pod : cluster_.pods.store().ByIndex(kHeldIndex)) {
    const std::string_view warmup =
        api::WarmupNameIn(pod->value().TextAt({"metadata", "annotations", api::kWarmupAnnotation}));
    if (pod->ns() == ns && !warmup.empty() && warmup != own) {
      queues_.warmups.AddAfter(fmt::format("{}/{}", ns, warmup), kPodBurst);
    }
  }
}

void Triggers::AddAllWarmups(Duration delay) {
  for (const kube::CachedObjectPtr& object : cluster_.warmups.store().List()) {
    queues_.warmups.AddAfter(object->name().ToString(), delay);
  }
}

template <typename Predicate>
void Triggers::AddWarmupsOf(const std::string& ns, Duration delay, Predicate matches) {
  for (const auto& warmup : cluster_.warmup_views.ListNamespace(ns)) {
    if (matches(*warmup)) {
      queues_.warmups.AddAfter(warmup->ns + "/" + warmup->name, delay);
    }
  }
}

std::set<std::string> Triggers::KeysByUid(const std::string& warmup_uid) const {
  std::set<std::string> keys;
  for (const kube::CachedObjectPtr& object : cluster_.warmups.store().List()) {
    if (object->uid() == warmup_uid) {
      keys.insert(object->name().ToString());
    }
  }
  return keys;
}

void Triggers::AddByUid(const std::string& warmup_uid, Duration delay) {
  for (const std::string& key : KeysByUid(warmup_uid)) {
    queues_.warmups.AddAfter(key, delay);
  }
}

}  // namespace cachewarm::observe
