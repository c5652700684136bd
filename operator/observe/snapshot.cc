// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/snapshot.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/api/gate/release.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "operator/observe/failures.h"
#include "operator/observe/promises.h"
#include "operator/observe/workload.h"
#include "operator/plan/gates/groups.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

// The labels of the pods that are ours to look at, whether injected or not.
std::map<std::string, std::string> PodLabels(const plan::Workload& workload,
                                             const api::CacheWarmup& warmup) {
  if (!workload.selector.empty()) {
    return workload.selector;
  }
  return warmup.status.injection.has_value() ? warmup.status.injection->labels
                                             : std::map<std::string, std::string>{};
}

bool IsLabelled(const kube::KeptObject& object, const std::map<std::string, std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
    const codec::PackedValue value = object.value().At({"metadata", "labels", wanted.first});
    return value.is_string() && value.Text() == wanted.second;
  });
}

std::vector<std::shared_ptr<const api::Pod>> FindPods(const World& world,
                                                      const plan::Snapshot& snapshot) {
  const api::CacheWarmup& warmup = snapshot.warmup;
  const kube::Store& store = world.pods.store();
  std::map<kube::ObjectName, kube::Kept> found;
  const auto take = [&](const std::vector<kube::Kept>& objects) {
    for (const kube::Kept& object : objects) {
      found.emplace(object->name(), object);
    }
  };
  take(store.ByIndex(InjectedIndex(warmup.ns, warmup.name)));
  take(store.ByIndex(BuilderIndex(warmup.uid)));
  const std::map<std::string, std::string> labels = PodLabels(snapshot.workload, warmup);
  if (!labels.empty()) {
    for (const kube::Kept& object : store.ListNamespace(warmup.ns)) {
      if (IsLabelled(*object, labels)) {
        found.emplace(object->name(), object);
      }
    }
  }
  std::vector<kube::Kept> objects;
  objects.reserve(found.size());
  for (const auto& [name, object] : found) {
    objects.push_back(object);
  }
  return world.pod_views.Of(objects);
}

bool IsFree(const api::Pod& pod) {
  return !api::gate::IsHeld(pod) && !pod.meta.deleting && !api::HasEnded(pod);
}

std::set<std::string> GroupsOfHeldPods(const plan::Snapshot& snapshot) {
  std::set<std::string> groups;
  for (const auto& pod : snapshot.pods) {
    if (api::gate::IsHeld(*pod)) {
      groups.insert(plan::GroupOf(*pod));
    }
  }
  groups.erase("");
  return groups;
}

// A JobSet with a warmup for each of its templates, say.
std::set<std::string> GroupsFreeElsewhere(const World& world, const plan::Snapshot& snapshot) {
  const std::set<std::string> held = GroupsOfHeldPods(snapshot);
  std::set<std::string> free;
  for (const plan::OtherWarmup& other :
       held.empty() ? std::vector<plan::OtherWarmup>() : snapshot.others) {
    const std::string index = InjectedIndex(snapshot.warmup.ns, other.name);
    for (const kube::Kept& object : world.pods.store().ByIndex(index)) {
      const auto pod = world.pod_views.Of(object);
      const std::string group = pod == nullptr ? "" : plan::GroupOf(*pod);
      if (held.contains(group) && IsFree(*pod)) {
        free.insert(group);
      }
    }
  }
  return free;
}

plan::BuilderJob ReadJob(const Json& job) {
  plan::BuilderJob out{
      .name = kube::NameOf(job).name,
      .uid = kube::UidOf(job),
      .key = kube::TextAt(job, {"metadata", "labels", api::kBuilderKeyLabel}),
      .created =
          ParseTime(kube::TextAt(job, {"metadata", "creationTimestamp"})).value_or(WallTime{}),
      .deleting = kube::IsDeleting(job)};
  const Json* conditions = kube::At(job, {"status", "conditions"});
  if (conditions != nullptr && conditions->is_array()) {
    for (const Json& condition : *conditions) {
      if (kube::TextAt(condition, {"type"}) == "Failed" &&
          kube::TextAt(condition, {"status"}) == "True") {
        out.failed = true;
        out.message = kube::TextAt(condition, {"message"});
      }
    }
  }
  return out;
}

std::string_view NameOfWarmup(const kube::KeptObject& job, std::string_view uid) {
  for (const codec::PackedValue& owner : job.value().At({"metadata", "ownerReferences"}).Items()) {
    if (owner.TextAt({"uid"}) == uid) {
      return owner.TextAt({"name"});
    }
  }
  return {};
}

// Anybody may label a Job: one of ours is named in the status of its warmup as well, before it is
// made. Others take no place of builders.jobsMax.
bool IsMadeByUs(const World& world, const kube::KeptObject& job, std::string_view uid) {
  const kube::ObjectName owner{.ns = std::string(job.ns()),
                               .name = std::string(NameOfWarmup(job, uid))};
  const auto warmup = world.warmup_views.Get(owner);
  if (warmup == nullptr || warmup->uid != uid) {
    return false;
  }
  const auto& builders = warmup->status.builders;
  return std::any_of(builders.begin(), builders.end(),
                     [&](const auto& each) { return each.job == job.own_name(); });
}

void TakeJobs(const World& world, plan::Snapshot& snapshot) {
  for (const kube::Kept& kept : world.jobs.store().List()) {
    const std::string_view owner = kept->label(api::kBuilderWarmupLabel);
    if (owner.empty()) {
      continue;
    }
    if (owner == snapshot.warmup.uid && kept->ns() == snapshot.warmup.ns) {
      snapshot.jobs.push_back(ReadJob(*kept->Unpack()));
    } else if (!IsFinished(*kept) && IsMadeByUs(world, *kept, owner)) {
      ++snapshot.builder_jobs_elsewhere;
    }
  }
}

void TakeOthers(const World& world, plan::Snapshot& snapshot) {
  const api::CacheWarmup& ours = snapshot.warmup;
  const kube::Kept own = world.warmups.store().Find({.ns = ours.ns, .name = ours.name});
  const auto age = [](const kube::Kept& object) {
    return object == nullptr
               ? std::tuple(WallTime{}, std::string_view())
               : std::tuple(ParseTime(object->value().TextAt({"metadata", "creationTimestamp"}))
                                .value_or(WallTime{}),
                            object->uid());
  };
  for (const kube::Kept& object : world.warmups.store().ListNamespace(ours.ns)) {
    const auto other = world.warmup_views.Of(object);
    if (other == nullptr || other->name == ours.name || other->deleting) {
      continue;
    }
    snapshot.others.push_back({.name = other->name,
                               .older = age(object) < age(own),
                               .workload_ref = other->spec.workload_ref,
                               .labels = other->status.injection.has_value()
                                             ? other->status.injection->labels
                                             : std::map<std::string, std::string>{}});
  }
}

// Of thousands of agents no other pod's worth is decoded.
bool IsReadyAgent(const kube::KeptObject& pod) {
  if (pod.label(kAgentLabel) != kAgentLabelValue ||
      !pod.value().TextAt({"metadata", "deletionTimestamp"}).empty()) {
    return false;
  }
  const std::vector<codec::PackedValue> conditions =
      pod.value().At({"status", "conditions"}).Items();
  return std::any_of(conditions.begin(), conditions.end(), [](const codec::PackedValue& each) {
    return each.TextAt({"type"}) == "Ready" && each.TextAt({"status"}) == "True";
  });
}

// Names of the nodes whose agent is Ready.
std::set<std::string> NodesWithAgent(const World& world, const std::string& ns) {
  std::set<std::string> nodes;
  for (const kube::Kept& object : world.pods.store().ListNamespace(ns)) {
    if (IsReadyAgent(*object)) {
      nodes.emplace(object->value().TextAt({"spec", "nodeName"}));
    }
  }
  return nodes;
}

plan::Resources FreeOf(const api::Node& node, const api::Resources& used) {
  plan::Resources free = node.allocatable;
  for (const auto& [name, amount] : used) {
    const auto found = free.find(name);
    if (found != free.end()) {
      found->second -= amount;
    }
  }
  return free;
}

bool HasAgent(const World& world, const std::string& ns, const std::string& node) {
  const std::vector<kube::Kept> pods = world.pods.store().ByIndex(AgentIndex(node));
  return std::any_of(pods.begin(), pods.end(),
                     [&](const kube::Kept& pod) { return pod->ns() == ns && IsReadyAgent(*pod); });
}

void TakeNodes(const World& world, const std::string& agent_namespace, plan::Snapshot& snapshot) {
  const std::set<std::string> with_agent = NodesWithAgent(world, agent_namespace);
  const auto nodes = world.node_views.List();
  snapshot.nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    const std::string& name = node->meta.name;
    snapshot.nodes.push_back({.node = node,
                              .cache = world.node_cache_views.ShareOf(snapshot.warmup.uid, name),
                              .warmups_listed = world.node_cache_views.CountOf(name),
                              .agent_ready = with_agent.contains(name),
                              .free = FreeOf(*node, world.usage.Of(name))});
  }
}

}  // namespace

plan::Snapshot Observe(const World& world, const api::CacheWarmup& warmup,
                       const Circumstances& circumstances) {
  plan::Snapshot snapshot{.now = circumstances.now,
                          .settings = circumstances.settings,
                          .warmup = warmup,
                          .workload = ResolveWorkload(world, warmup),
                          .admission_missing = circumstances.admission_missing,
                          .rehearsal = circumstances.rehearsal,
                          .jobs = circumstances.refused_jobs,
                          .build_requests = circumstances.build_requests};
  const kube::Object ns = world.namespaces.store().Get({.name = warmup.ns});
  if (ns != nullptr) {
    snapshot.namespace_labels = kube::LabelsOf(*ns);
  }
  snapshot.promises = ReadPromises(world, warmup);
  snapshot.selected_label_keys = SelectedLabelKeys(world, warmup.ns);
  snapshot.pods = FindPods(world, snapshot);
  snapshot.create_failure = FindCreateFailure(world, snapshot);
  snapshot.mount_failures = FindMountFailures(world, snapshot.pods, circumstances.settings.root);
  TakeJobs(world, snapshot);
  TakeOthers(world, snapshot);
  snapshot.groups_free_elsewhere = GroupsFreeElsewhere(world, snapshot);
  TakeNodes(world, circumstances.agent_namespace, snapshot);
  return snapshot;
}

plan::NodeView ObserveNode(const World& world, const std::string& agent_namespace,
                           const std::shared_ptr<const api::Node>& node) {
  const std::string& name = node->meta.name;
  return {.node = node,
          .cache = world.node_cache_views.Get(name),
          .warmups_listed = world.node_cache_views.CountOf(name),
          .agent_ready = HasAgent(world, agent_namespace, name),
          .free = FreeOf(*node, world.usage.Of(name))};
}

plan::Snapshot ObserveOnNode(const World& world, const api::CacheWarmup& warmup,
                             const Circumstances& circumstances, const plan::NodeView& node) {
  plan::Snapshot snapshot{.now = circumstances.now,
                          .settings = circumstances.settings,
                          .warmup = warmup,
                          .workload = ResolveWorkload(world, warmup),
                          .nodes = {node}};
  if (snapshot.workload.kind == plan::WorkloadKind::kSelector) {
    snapshot.pods = FindPods(world, snapshot);
  }
  return snapshot;
}

}  // namespace cachewarm::observe
