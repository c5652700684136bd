// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/rollout_constraints.h"

#include <algorithm>
#include <charconv>

#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/observe/owners.h"
#include "operator/observe/workload.h"

namespace cachewarm::observe {
namespace {

using api::Labels;
using codec::Json;

// Label of the workloads that Kueue manages. Users set it; in namespaces with a default queue,
// Kueue sets it itself.
constexpr std::string_view kKueueQueueLabel = "kueue.x-k8s.io/queue-name";
// Seconds; the default of Deployment and Argo Rollout.
constexpr int64_t kDefaultProgressDeadline = 600;
constexpr int64_t kPodsMax = 1'000'000;  // limit of each count; sums cannot overflow

int64_t CountAt(const Json& object, codec::JsonPath path, int64_t fallback) {
  return std::clamp<int64_t>(codec::IntegerAt(object, path, fallback), 0, kPodsMax);
}

// maxSurge and maxUnavailable (`missing`) of a Deployment or Rollout; null if absent.
struct Rolling {
  const Json* surge = nullptr;
  const Json* missing = nullptr;
};

// Returns status.observedGeneration; 0 if it is missing or invalid. Argo writes it as a string.
int64_t ObservedGeneration(const Json& object) {
  const std::string text = codec::TextAt(object, {"status", "observedGeneration"});
  int64_t generation = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), generation);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? generation : CountAt(object, {"status", "observedGeneration"}, 0);
}

// Returns true if the rollout has replaced all pods by pods of the current template.
bool IsRolledOut(const Json& object, int64_t replicas) {
  return ObservedGeneration(object) >= CountAt(object, {"metadata", "generation"}, 0) &&
         CountAt(object, {"status", "updatedReplicas"}, 0) >= replicas;
}

bool IsRefusedByQuota(const Json& object) {
  const Json& conditions = codec::ListAt(object, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
    return codec::TextAt(condition, {"type"}) == "ReplicaFailure" &&
           codec::TextAt(condition, {"status"}) == "True" &&
           codec::TextAt(condition, {"message"}).find("exceeded quota") != std::string::npos;
  });
}

// maxSurge and maxUnavailable default to 25 % (apps/v1; Argo Rollouts' CanaryStrategy).
void ReadRolling(const Json& object, const Rolling& rolling, model::RolloutConstraints& out) {
  const int64_t replicas = CountAt(object, {"spec", "replicas"}, 1);
  // A positive percentage rounds up to at least one pod: only an explicit 0 or 0% means no surge.
  out.no_surge = ScaledValue(rolling.surge, 100, true, 1) == 0;
  out.progress_deadline = std::chrono::seconds(
      CountAt(object, {"spec", "progressDeadlineSeconds"}, kDefaultProgressDeadline));
  out.available = CountAt(object, {"status", "availableReplicas"}, 0);
  const int64_t missing = ScaledValue(rolling.missing, replicas, false, replicas / 4);
  out.required = std::max<int64_t>(replicas - missing, 0);
  const int64_t surge = IsRolledOut(object, replicas)
                            ? 0
                            : ScaledValue(rolling.surge, replicas, true, (replicas + 3) / 4);
  out.pods_most = replicas + (replicas > 0 ? surge : 0);
  out.quota_exceeded = IsRefusedByQuota(object);
}

void ReadDeployment(const Json& object, model::RolloutConstraints& out) {
  ReadRolling(
      object,
      {.surge = codec::At(object, {"spec", "strategy", "rollingUpdate", "maxSurge"}),
       .missing = codec::At(object, {"spec", "strategy", "rollingUpdate", "maxUnavailable"})},
      out);
  out.recreate = codec::TextAt(object, {"spec", "strategy", "type"}) == "Recreate";
  if (out.recreate) {
    out.no_surge = false;
    out.pods_most = CountAt(object, {"spec", "replicas"}, 1);
  }
}

// The strategy blueGreen creates a complete second set of pods before it removes the first. So its
// surge is 100 %, and no pod of the first set may be missing.
void ReadRollout(const Json& object, model::RolloutConstraints& out) {
  const Json none = 0;
  const Json all = "100%";
  const bool whole = codec::At(object, {"spec", "strategy", "blueGreen"}) != nullptr;
  const Json* surge = codec::At(object, {"spec", "strategy", "canary", "maxSurge"});
  const Json* missing = codec::At(object, {"spec", "strategy", "canary", "maxUnavailable"});
  ReadRolling(object, {.surge = whole ? &all : surge, .missing = whole ? &none : missing}, out);
}

// Requires all replicas to be available, because an update deletes each pod before it creates the
// replacement, which must then not be held. The plan ignores this requirement until all replicas
// have been available (operator/plan/gates/hold_policy.cc). Therefore, with podManagementPolicy
// Parallel, pods may still be held at a first start and at a scale-up.
void ReadStatefulSet(const Json& object, model::RolloutConstraints& out) {
  out.in_order = codec::TextAt(object, {"spec", "podManagementPolicy"}) != "Parallel";
  out.available = CountAt(object, {"status", "availableReplicas"}, 0);
  out.required = CountAt(object, {"spec", "replicas"}, 1);
  out.pods_most = out.required;
}

// Counts groups of pods, not pods. Without maxSurge, a rolling update deletes a group before it
// creates the replacement, so all groups are required, as in ReadStatefulSet(). Does not set
// `no_surge`, which would forbid holding pods also at a first start and a scale-up, when no group
// is deleted.
void ReadLeaderWorkerSet(const Json& object, model::RolloutConstraints& out) {
  const auto rolling = [&](std::string_view field) {
    return codec::At(object, {"spec", "rolloutStrategy", "rollingUpdateConfiguration", field});
  };
  const int64_t groups = CountAt(object, {"spec", "replicas"}, 1);
  const bool surges = ScaledValue(rolling("maxSurge"), groups, true, 0) > 0;
  const int64_t missing = surges ? ScaledValue(rolling("maxUnavailable"), groups, false, 1) : 0;
  out.available = CountAt(object, {"status", "readyReplicas"}, 0);
  out.required = std::max<int64_t>(groups - missing, 0);
}

bool HasDeadline(const Json& object) {
  return CountAt(object, {"spec", "activeDeadlineSeconds"}, 0) > 0 ||
         CountAt(object, {"spec", "template", "spec", "activeDeadlineSeconds"}, 0) > 0 ||
         CountAt(object, {"spec", "jobTemplate", "spec", "activeDeadlineSeconds"}, 0) > 0 ||
         CountAt(object,
                 {"spec", "jobTemplate", "spec", "template", "spec", "activeDeadlineSeconds"},
                 0) > 0;
}

bool Meets(const Json& requirement, const Labels& labels) {
  const auto found = labels.find(codec::TextAt(requirement, {"key"}));
  const std::string op = codec::TextAt(requirement, {"operator"});
  if (op == "Exists" || op == "DoesNotExist") {
    return (found != labels.end()) == (op == "Exists");
  }
  if (op != "In" && op != "NotIn") {
    return false;
  }
  const Json& values = codec::ListAt(requirement, {"values"});
  const bool listed =
      found != labels.end() &&
      std::find(values.begin(), values.end(), std::string(found->second)) != values.end();
  return listed == (op == "In");
}

// Constraints of one workload, or the sum of several.
struct OwnerConstraints {
  model::RolloutConstraints constraints;
  bool counts = false;  // true if constraints.available and constraints.required are known
  // Number of pods that must be available but are not, summed over the workloads. Surplus pods of
  // one workload do not offset missing pods of another.
  int64_t lacking = 0;
};

OwnerConstraints ReadWorkload(const Json& object) {
  const std::string kind = codec::TextAt(object, {"kind"});
  OwnerConstraints total{.counts = true};
  model::RolloutConstraints& out = total.constraints;
  out.job_deadline = HasDeadline(object);
  out.queued = codec::At(object, {"metadata", "labels", kKueueQueueLabel}) != nullptr;
  if (kind == "Deployment") {
    ReadDeployment(object, out);
  } else if (kind == "Rollout") {
    ReadRollout(object, out);
  } else if (kind == "StatefulSet") {
    ReadStatefulSet(object, out);
  } else if (kind == "LeaderWorkerSet") {
    ReadLeaderWorkerSet(object, out);
  } else {
    total.counts = false;
  }
  if (kind == "InferenceService" || kind == "LLMInferenceService") {
    // KServe or Knative creates Deployments for these kinds, with the default progress deadline.
    out.progress_deadline = std::chrono::seconds(kDefaultProgressDeadline);
  }
  total.lacking = std::max<int64_t>(out.required - out.available, 0);
  return total;
}

Duration Shorter(Duration a, Duration b) {
  return a == Duration{0} || b == Duration{0} ? std::max(a, b) : std::min(a, b);
}

void Add(const OwnerConstraints& owner, OwnerConstraints& all) {
  const model::RolloutConstraints& one = owner.constraints;
  model::RolloutConstraints& sum = all.constraints;
  sum.recreate = sum.recreate || one.recreate;
  sum.no_surge = sum.no_surge || one.no_surge;
  sum.in_order = sum.in_order || one.in_order;
  sum.job_deadline = sum.job_deadline || one.job_deadline;
  sum.queued = sum.queued || one.queued;
  sum.quota_exceeded = sum.quota_exceeded || one.quota_exceeded;
  sum.progress_deadline = Shorter(sum.progress_deadline, one.progress_deadline);
  sum.available += one.available;
  sum.required += one.required;
  sum.pods_most += one.pods_most;
  all.counts = all.counts || owner.counts;
  all.lacking += owner.lacking;
}

// Adds the constraints of a PodDisruptionBudget. If the number of available pods of the workload is
// known (`counts`), requires at least that number plus the healthy pods that the budget lacks.
// Otherwise, of all budgets that were added, uses the numbers of the one that lacks most pods.
void ReadBudget(const Json& budget, bool counts, model::RolloutConstraints& out) {
  const int64_t desired = CountAt(budget, {"status", "desiredHealthy"}, 0);
  const int64_t healthy = CountAt(budget, {"status", "currentHealthy"}, 0);
  if (counts) {
    out.required = std::max(out.required, out.available + desired - healthy);
  } else if (out.required == 0 || desired - healthy > out.required - out.available) {
    out.available = healthy;
    out.required = desired;
  }
}

model::RolloutConstraints ReadBudgets(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                                      const Labels& labels, const OwnerConstraints& total) {
  model::RolloutConstraints out = total.constraints;
  for (const kube::CachedObjectPtr& cached :
       cluster.disruption_budgets.store().ListNamespace(warmup.ns)) {
    const kube::Object budget = cached->Unpack();
    const Json* selector = codec::At(*budget, {"spec", "selector"});
    if (selector != nullptr && selector->is_object() && SelectsLabels(*selector, labels)) {
      ReadBudget(*budget, total.counts, out);
    }
  }
  if (total.lacking > 0 && out.required == total.constraints.required) {
    out.available = out.required - total.lacking;
  }
  return out;
}

bool IsKnownByLabels(const model::Workload& workload) {
  return !workload.selector.empty() && (workload.kind == model::WorkloadKind::kSelector ||
                                        workload.kind == model::WorkloadKind::kTemplate);
}

Labels LabelsOf(const model::Workload& workload) {
  return workload.pod_template == nullptr
             ? workload.selector
             : codec::Texts(codec::At(*workload.pod_template, {"metadata", "labels"}));
}

}  // namespace

int64_t ScaledValue(const Json* value, int64_t total, bool round_up, int64_t fallback) {
  if (value == nullptr) {
    return fallback;
  }
  if (value->is_number_integer()) {
    return std::clamp<int64_t>(value->get<int64_t>(), 0, kPodsMax);
  }
  if (!value->is_string()) {
    return fallback;
  }
  const auto& text = value->get_ref<const std::string&>();
  int64_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || std::string_view(end) != "%" || percent < 0 || percent > 100) {
    return fallback;
  }
  return (total * percent + (round_up ? 99 : 0)) / 100;
}

bool SelectsLabels(const Json& selector, const Labels& labels) {
  const Json* equal = codec::At(selector, {"matchLabels"});
  const Labels::Texts wanted = codec::Texts(equal);
  const bool all_are_texts =
      equal == nullptr || !equal->is_object() || wanted.size() == equal->size();
  if (!all_are_texts || !api::HasLabels(labels, wanted)) {
    return false;
  }
  const Json& terms = codec::ListAt(selector, {"matchExpressions"});
  return std::all_of(terms.begin(), terms.end(),
                     [&](const Json& term) { return Meets(term, labels); });
}

model::RolloutConstraints ReadRolloutConstraints(const ClusterCache& cluster,
                                                 const api::CacheWarmup& warmup) {
  OwnerConstraints total;
  if (warmup.spec.workload_ref.has_value()) {
    const kube::Object object = FindReferenced(cluster, warmup);
    if (object == nullptr) {
      return {};
    }
    total = ReadWorkload(*object);
  }
  const model::Workload workload = ResolveWorkload(cluster, warmup);
  if (IsKnownByLabels(workload)) {
    for (const kube::Object& owner : FindOwners(cluster, warmup.ns, workload.selector)) {
      Add(ReadWorkload(*owner), total);
    }
  }
  const Labels labels = LabelsOf(workload);
  return labels.empty() ? total.constraints : ReadBudgets(cluster, warmup, labels, total);
}

std::set<std::string> SelectedLabelKeys(const ClusterCache& cluster, const std::string& ns) {
  std::set<std::string> keys;
  const auto add = [&](const Json* equal) {
    for (const auto& [key, value] : codec::Texts(equal)) {
      keys.insert(key);
    }
  };
  for (const kube::CachedObjectPtr& cached : cluster.disruption_budgets.store().ListNamespace(ns)) {
    const kube::Object budget = cached->Unpack();
    add(codec::At(*budget, {"spec", "selector", "matchLabels"}));
    for (const Json& each : codec::ListAt(*budget, {"spec", "selector", "matchExpressions"})) {
      keys.insert(codec::TextAt(each, {"key"}));
    }
  }
  for (const kube::CachedObjectPtr& cached : cluster.services.store().ListNamespace(ns)) {
    const Json selector = cached->value().At({"spec", "selector"}).Unpack();
    add(&selector);
  }
  return keys;
}

}  // namespace cachewarm::observe
