// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/observe_warmup.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/model/pod_groups.h"
#include "operator/observe/rejected_pods.h"
#include "operator/observe/rollout_constraints.h"
#include "operator/observe/workload.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

// Returns labels that all pods of the warmup have, whether they were injected or not: the selector
// of the workload or, if it is empty, the labels in status.injection.
std::map<std::string, std::string> PodLabels(const model::Workload& workload,
                                             const api::CacheWarmup& warmup) {
  if (!workload.selector.empty()) {
    return workload.selector;
  }
  return warmup.status.injection.has_value() ? warmup.status.injection->labels
                                             : std::map<std::string, std::string>{};
}

bool IsLabelled(const kube::CachedObject& object,
                const std::map<std::string, std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
    const codec::PackedValue value = object.value().At({"metadata", "labels", wanted.first});
    return value.is_string() && value.Text() == wanted.second;
  });
}

// Returns true if a Job controls the pod. The labels of a builder's pod are no proof, because
// anyone can set them.
bool IsOfJob(const kube::CachedObject& pod) {
  const std::vector<codec::PackedValue> owners =
      pod.value().At({"metadata", "ownerReferences"}).Items();
  return std::any_of(owners.begin(), owners.end(), [](const codec::PackedValue& owner) {
    return owner.TextAt({"kind"}) == "Job";
  });
}

std::vector<std::shared_ptr<const api::Pod>> FindPods(const ClusterCache& cluster,
                                                      const model::Snapshot& snapshot) {
  const api::CacheWarmup& warmup = snapshot.warmup;
  const kube::Store& store = cluster.pods.store();
  std::map<kube::ObjectName, kube::CachedObjectPtr> found;
  const auto take = [&](const std::vector<kube::CachedObjectPtr>& objects) {
    for (const kube::CachedObjectPtr& object : objects) {
      found.emplace(object->name(), object);
    }
  };
  take(store.ByIndex(InjectedIndex(warmup.ns, warmup.name)));
  for (const kube::CachedObjectPtr& object : store.ByIndex(BuilderIndex(warmup.uid))) {
    if (object->ns() == warmup.ns && IsOfJob(*object)) {
      found.emplace(object->name(), object);
    }
  }
  const std::map<std::string, std::string> labels = PodLabels(snapshot.workload, warmup);
  if (!labels.empty()) {
    for (const kube::CachedObjectPtr& object : store.ListNamespace(warmup.ns)) {
      if (IsLabelled(*object, labels)) {
        found.emplace(object->name(), object);
      }
    }
  }
  std::vector<kube::CachedObjectPtr> objects;
  objects.reserve(found.size());
  for (const auto& [name, object] : found) {
    objects.push_back(object);
  }
  return cluster.pod_views.Of(objects);
}

bool IsFree(const api::Pod& pod) {
  return !gate::IsHeld(pod) && !pod.meta.deleting && !api::HasEnded(pod);
}

std::set<std::string> GroupsOfHeldPods(const model::Snapshot& snapshot) {
  std::set<std::string> groups;
  for (const auto& pod : snapshot.pods) {
    if (gate::IsHeld(*pod)) {
      groups.insert(model::GroupOf(*pod));
    }
  }
  groups.erase("");
  return groups;
}

// Returns the pod groups (of gang scheduling) that contain a held pod of this warmup and a pod of
// another warmup that is not held. A group can include pods of several warmups, for example if each
// template of a JobSet has its own warmup.
std::set<std::string> GroupsFreeElsewhere(const ClusterCache& cluster,
                                          const model::Snapshot& snapshot) {
  const std::set<std::string> held = GroupsOfHeldPods(snapshot);
  std::set<std::string> free;
  for (const model::OtherWarmup& other :
       held.empty() ? std::vector<model::OtherWarmup>() : snapshot.others) {
    const std::string index = InjectedIndex(snapshot.warmup.ns, other.name);
    for (const kube::CachedObjectPtr& object : cluster.pods.store().ByIndex(index)) {
      const auto pod = cluster.pod_views.Of(object);
      const std::string group = pod == nullptr ? "" : model::GroupOf(*pod);
      if (held.contains(group) && IsFree(*pod)) {
        free.insert(group);
      }
    }
  }
  return free;
}

model::BuilderJob ReadJob(const Json& job) {
  model::BuilderJob out{
      .name = kube::NameOf(job).name,
      .uid = kube::UidOf(job),
      .key = codec::TextAt(job, {"metadata", "labels", api::kBuilderKeyLabel}),
      .created =
          ParseTime(codec::TextAt(job, {"metadata", "creationTimestamp"})).value_or(WallTime{}),
      .deleting = kube::IsDeleting(job)};
  for (const Json& condition : codec::ListAt(job, {"status", "conditions"})) {
    if (codec::TextAt(condition, {"type"}) == "Failed" &&
        codec::TextAt(condition, {"status"}) == "True") {
      out.failed = true;
      out.message = codec::TextAt(condition, {"message"});
    }
  }
  return out;
}

std::string_view NameOfWarmup(const kube::CachedObject& job, std::string_view uid) {
  for (const codec::PackedValue& owner : job.value().At({"metadata", "ownerReferences"}).Items()) {
    if (owner.TextAt({"uid"}) == uid) {
      return owner.TextAt({"name"});
    }
  }
  return {};
}

// Returns true if the operator created this builder Job. The label of a builder Job is no proof,
// because anyone can set it. The proof is the warmup's status, in which the operator records a
// builder Job before it creates the Job. A Job without this proof does not count against
// builders.jobsMax.
bool IsOwnBuilderJob(const ClusterCache& cluster, const kube::CachedObject& job,
                     std::string_view uid) {
  const kube::ObjectName owner{.ns = std::string(job.ns()),
                               .name = std::string(NameOfWarmup(job, uid))};
  const auto warmup = cluster.warmup_views.Get(owner);
  if (warmup == nullptr || warmup->uid != uid) {
    return false;
  }
  const auto& builders = warmup->status.builders;
  return std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
    return each.job == job.own_name() || api::CurrentJob(each) == job.own_name();
  });
}

void AddJobs(const ClusterCache& cluster, model::Snapshot& snapshot) {
  for (const kube::CachedObjectPtr& cached : cluster.jobs.store().List()) {
    const std::string_view owner = cached->label(api::kBuilderWarmupLabel);
    if (owner.empty()) {
      continue;
    }
    if (owner == snapshot.warmup.uid && cached->ns() == snapshot.warmup.ns &&
        !NameOfWarmup(*cached, owner).empty()) {
      snapshot.jobs.push_back(ReadJob(*cached->Unpack()));
    } else if (!IsFinished(*cached) && IsOwnBuilderJob(cluster, *cached, owner)) {
      ++snapshot.builder_jobs_elsewhere;
    }
  }
}

void AddOtherWarmups(const ClusterCache& cluster, model::Snapshot& snapshot) {
  const api::CacheWarmup& warmup = snapshot.warmup;
  const kube::CachedObjectPtr own =
      cluster.warmups.store().Find({.ns = warmup.ns, .name = warmup.name});
  const auto age = [](const kube::CachedObjectPtr& object) {
    return object == nullptr
               ? std::tuple(WallTime{}, std::string_view())
               : std::tuple(ParseTime(object->value().TextAt({"metadata", "creationTimestamp"}))
                                .value_or(WallTime{}),
                            object->uid());
  };
  for (const kube::CachedObjectPtr& object : cluster.warmups.store().ListNamespace(warmup.ns)) {
    const auto other = cluster.warmup_views.Of(object);
    if (other == nullptr || other->name == warmup.name || other->deleting) {
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

// Returns true if the pod belongs to an agent and is Ready. Reads the packed object, because
// decoding thousands of agent pods costs too much.
bool IsReadyAgent(const kube::CachedObject& pod) {
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

// Returns the names of nodes with a Ready agent.
std::set<std::string> NodesWithAgent(const ClusterCache& cluster, const std::string& ns) {
  std::set<std::string> nodes;
  for (const kube::CachedObjectPtr& object : cluster.pods.store().ListNamespace(ns)) {
    if (IsReadyAgent(*object)) {
      nodes.emplace(object->value().TextAt({"spec", "nodeName"}));
    }
  }
  return nodes;
}

api::Resources FreeOf(const api::Node& node, const api::Resources& used) {
  api::Resources free = node.allocatable;
  for (const auto& [name, amount] : used) {
    const auto found = free.find(name);
    if (found != free.end()) {
      found->second -= amount;
    }
  }
  return free;
}

bool HasAgent(const ClusterCache& cluster, const std::string& ns, const std::string& node) {
  const std::vector<kube::CachedObjectPtr> pods = cluster.pods.store().ByIndex(AgentIndex(node));
  return std::any_of(pods.begin(), pods.end(), [&](const kube::CachedObjectPtr& pod) {
    return pod->ns() == ns && IsReadyAgent(*pod);
  });
}

void AddNodes(const ClusterCache& cluster, const std::string& agent_namespace,
              model::Snapshot& snapshot) {
  const std::set<std::string> with_agent = NodesWithAgent(cluster, agent_namespace);
  const auto nodes = cluster.node_views.List();
  snapshot.nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    const std::string& name = node->meta.name;
    snapshot.nodes.push_back({.node = node,
                              .cache = cluster.node_cache_views.ShareOf(snapshot.warmup.uid, name),
                              .warmups_listed = cluster.node_cache_views.CountOf(name),
                              .agent_ready = with_agent.contains(name),
                              .free = FreeOf(*node, cluster.usage.Of(name))});
  }
}

}  // namespace

model::Snapshot Observe(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                        const ObserveInputs& inputs) {
  model::Snapshot snapshot{.now = inputs.now,
                           .settings = inputs.settings,
                           .factor_salt = inputs.factor_salt,
                           .warmup = warmup,
                           .workload = ResolveWorkload(cluster, warmup),
                           .admission_missing = inputs.admission_missing,
                           .dry_run = inputs.dry_run,
                           .release_refusal = inputs.release_refusal,
                           .jobs = inputs.refused_jobs,
                           .build_requests = inputs.build_requests,
                           .engine_reports = inputs.engine_reports};
  const kube::Object ns = cluster.namespaces.store().Get({.name = warmup.ns});
  if (ns != nullptr) {
    snapshot.namespace_labels = kube::LabelsOf(*ns);
  }
  snapshot.constraints = ReadRolloutConstraints(cluster, warmup);
  snapshot.selected_label_keys = SelectedLabelKeys(cluster, warmup.ns);
  snapshot.pods = FindPods(cluster, snapshot);
  snapshot.create_failure = FindCreateFailure(cluster, snapshot);
  snapshot.mount_failures = FindMountFailures(cluster, snapshot.pods, inputs.settings.root);
  AddJobs(cluster, snapshot);
  AddOtherWarmups(cluster, snapshot);
  snapshot.groups_free_elsewhere = GroupsFreeElsewhere(cluster, snapshot);
  AddNodes(cluster, inputs.agent_namespace, snapshot);
  return snapshot;
}

model::NodeView ObserveNode(const ClusterCache& cluster, const std::string& agent_namespace,
                            const std::shared_ptr<const api::Node>& node) {
  const std::string& name = node->meta.name;
  return {.node = node,
          .cache = cluster.node_cache_views.Get(name),
          .warmups_listed = cluster.node_cache_views.CountOf(name),
          .agent_ready = HasAgent(cluster, agent_namespace, name),
          .free = FreeOf(*node, cluster.usage.Of(name))};
}

model::Snapshot ObserveOnNode(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                              const ObserveInputs& inputs, const model::NodeView& node) {
  model::Snapshot snapshot{.now = inputs.now,
                           .settings = inputs.settings,
                           .factor_salt = inputs.factor_salt,
                           .warmup = warmup,
                           .workload = ResolveWorkload(cluster, warmup),
                           .nodes = {node}};
  if (snapshot.workload.kind == model::WorkloadKind::kSelector) {
    snapshot.pods = FindPods(cluster, snapshot);
  }
  return snapshot;
}

}  // namespace cachewarm::observe
