// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/plan/builders/jobs.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/starts/savings.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr size_t kWarmRevisionsMax = 16;

bool CountsForWarm(const NodeState& node) {
  return node.ready && (node.possible || node.target >= 0);
}

// True if the bundle for pods with `factors` is active on at least nine in ten of the Ready nodes
// to which such pods could be scheduled, and there is such a node. Every such node must have
// prepared the directory. Ignores nodes that still have a startup taint.
bool IsWarmNearlyEverywhere(const DistributedContext& context, const PodFactors& factors) {
  size_t all = 0;
  size_t cold = 0;
  for (const NodeState& node : context.nodes) {
    if (!node.ready || !node.possible || HasStartupTaint(*node.view->node)) {
      continue;
    }
    if (!node.prepared) {
      return false;
    }
    if (node.target >= 0) {
      ++all;
      cold += IsWarm(context, context.bundles, node, factors) ? 0U : 1U;
    }
  }
  return all > 0 && IsMinority(cold, all);
}

std::vector<std::string> WarmRevisions(const DistributedContext& context) {
  // A revision may have several PodFactors: the leaders of a LeaderWorkerSet may use a different
  // image than its workers.
  std::map<std::string, std::vector<PodFactors>> factors;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.of_job && !pod.factors.image.empty()) {
      std::vector<PodFactors>& known = factors[pod.revision];
      if (std::find(known.begin(), known.end(), pod.factors) == known.end()) {
        known.push_back(pod.factors);
      }
    }
  }
  const bool warm_now = IsWarmNearlyEverywhere(context, context.pod_template.factors);
  const auto is_warm = [&](const PodFactors& each) {
    return each == context.pod_template.factors ? warm_now : IsWarmNearlyEverywhere(context, each);
  };
  std::vector<std::string> out;
  for (const std::string& revision : context.starts.proven_revisions) {
    const auto known = factors.find(revision);
    if (known == factors.end() ? warm_now
                               : std::all_of(known->second.begin(), known->second.end(), is_warm)) {
      out.push_back(revision);
    }
  }
  // Put revisions that still have pods first, so that the limit drops the other ones.
  std::stable_partition(out.begin(), out.end(),
                        [&](const std::string& each) { return factors.contains(each); });
  out.resize(std::min(out.size(), kWarmRevisionsMax));
  std::sort(out.begin(), out.end());
  return out;
}

// ---- conditions ---------------------------------------------------------------------------------

struct Spread {
  size_t targets = 0;
  size_t targets_warm = 0;
  size_t nodes = 0;
  size_t nodes_warm = 0;
  size_t without_bundle = 0;
  size_t building = 0;
};

Spread CountSpread(const DistributedContext& context) {
  Spread out;
  for (const Target& target : context.targets) {
    size_t ready = 0;
    size_t warm = 0;
    for (const size_t index : target.nodes) {
      const NodeState& node = context.nodes[index];
      if (CountsForWarm(node)) {
        ++ready;
        warm += IsWarm(context, context.bundles, node, context.pod_template.factors) ? 1U : 0U;
      }
    }
    if (ready == 0) {
      continue;
    }
    ++out.targets;
    out.nodes += ready;
    out.nodes_warm += warm;
    out.targets_warm += ready == warm ? 1U : 0U;
  }
  for (const LiveKey& key : context.keys) {
    if (key.current && context.bundles.For(key) == nullptr) {
      ++out.without_bundle;
      const api::BuilderStatus* builder = FindBuilder(context.builders, key.key);
      out.building += builder != nullptr && IsRunning(*builder) ? 1U : 0U;
    }
  }
  return out;
}

// Explains why no GPU type is known.
std::string NoTypeMessage(const Context& context) {
  for (const NodeState& node : context.nodes) {
    if (!node.hidden_device.empty()) {
      const std::string& name = node.view->node->meta.name;
      return fmt::format(
          "no GPU type is known yet: node {} offers {}, but the agent there does not see the "
          "devices; the condition GPUNotVisible of NodeCache {} has the remedy",
          name, node.hidden_device, name);
    }
  }
  return "no GPU type is known yet; waiting for a node that fits the workload";
}

// Returns a key of the current template whose bundle is suspended; nullptr if there is none.
const LiveKey* FindSuspendedKey(const DistributedContext& context) {
  const auto found = std::find_if(
      context.keys.begin(), context.keys.end(),
      [&](const LiveKey& key) { return key.current && context.bundles.IsWithoutSuspended(key); });
  return found == context.keys.end() ? nullptr : &*found;
}

int CountSuspendedBundles(const DistributedContext& context) {
  std::set<Digest> digests;
  for (const LiveKey& key : context.keys) {
    if (key.current && context.bundles.IsWithoutSuspended(key)) {
      digests.insert(context.bundles.LastSuspendedFor(key)->digest);
    }
  }
  return static_cast<int>(digests.size());
}

std::string NextBuildOf(const DistributedContext& context, const LiveKey& key) {
  const api::BuilderStatus* builder = FindBuilder(context.builders, key.key);
  if (builder != nullptr && builder->bundles_suspended >= kSuspendedPerKeyMax) {
    return "no other bundle is built until the rollout is restarted, or spec.caches or "
           "spec.compile changes";
  }
  return UsesJob(context) ? "the next builder Job builds another bundle"
                          : "one of the next pods builds another bundle";
}

api::ConditionUpdate EvaluateWarm(const DistributedContext& context, const Spread& spread) {
  if (spread.targets > 0 && spread.targets == spread.targets_warm) {
    return {.holds = true,
            .reason = std::string(reason::kDistributed),
            .message = fmt::format("the bundle is active on {} nodes", spread.nodes_warm)};
  }
  if (spread.building > 0) {
    return {.reason = std::string(reason::kBuilding),
            .message = fmt::format("bundles for {} of {} GPU types are being built",
                                   spread.building, spread.targets)};
  }
  if (spread.targets == 0) {
    return {.reason = std::string(reason::kNoBundle),
            .message = !context.builds.job_refusal.empty() ? context.builds.job_refusal
                                                           : NoTypeMessage(context)};
  }
  if (const LiveKey* key = FindSuspendedKey(context)) {
    return {.reason = std::string(reason::kBundleSuspended),
            .message = fmt::format(
                "the bundle for {}, {} is suspended (see condition Degraded); {}",
                key->factors.gpu_type, key->factors.cpu_class, NextBuildOf(context, *key))};
  }
  if (spread.without_bundle > 0) {
    return {.reason = std::string(reason::kNoBundle),
            .message = !context.builds.job_refusal.empty()
                           ? context.builds.job_refusal
                           : fmt::format("{} of {} GPU types have no bundle yet; waiting for the "
                                         "first pod to start on a node of such a type",
                                         spread.without_bundle, spread.targets)};
  }
  return {.reason = std::string(reason::kDistributing),
          .message = fmt::format("the bundle is active on {} of {} nodes", spread.nodes_warm,
                                 spread.nodes)};
}

const api::BuilderStatus* FindExhausted(const DistributedContext& context) {
  for (const LiveKey& key : context.keys) {
    if (key.current &&
        IsExhausted(context, context.bundles, key, FindBuilder(context.builders, key.key))) {
      return FindBuilder(context.builders, key.key);
    }
  }
  return nullptr;
}

std::optional<api::ConditionUpdate> FailedNodes(const Context& context) {
  size_t count = 0;
  std::string first;
  bool by_store = false;
  for (const NodeState& node : context.nodes) {
    if (!node.ready || node.reported == nullptr) {
      continue;
    }
    for (const api::NodeBundle& bundle : node.reported->bundles) {
      if (bundle.state == api::BundleState::kFailed) {
        ++count;
        if (first.empty()) {
          by_store = bundle.reason == reason::kFetchFailed;
          first = fmt::format("node {}: {}", node.view->node->meta.name, bundle.message);
        }
        break;
      }
    }
  }
  if (count == 0) {
    return std::nullopt;
  }
  return api::ConditionUpdate{
      .holds = true,
      .reason = std::string(by_store ? reason::kStoreError : reason::kNodesFailed),
      .message =
          fmt::format("{} nodes failed to activate a bundle; first failure: {}", count, first)};
}

api::ConditionUpdate EvaluateDegraded(const DistributedContext& context) {
  if (context.releases_rejected()) {
    return {.holds = true,
            .reason = std::string(reason::kReleaseRejected),
            .message = TruncateMessage(fmt::format(
                "the API server rejects the release of held pods in namespace {}, so new pods are "
                "not held; allow service account cachewarm-operator to remove the scheduling gate "
                "{} of pods: {}",
                context.in.warmup.ns, api::kSchedulingGate, context.in.release_refusal.message))};
  }
  if (const api::BuilderStatus* builder = FindExhausted(context)) {
    return {.holds = true,
            .reason = std::string(reason::kBuildFailed),
            .message = fmt::format("{} build attempts for {}, {} failed; last failure: {}: {}",
                                   builder->attempt, builder->gpu_type, builder->cpu_class,
                                   builder->reason, builder->message)};
  }
  if (!context.builds.store_refusal.empty()) {
    return {.holds = true,
            .reason = std::string(reason::kStoreError),
            .message = context.builds.store_refusal};
  }
  if (const LiveKey* key = FindSuspendedKey(context)) {
    return {.holds = true,
            .reason = std::string(reason::kBundleSuspended),
            .message = TruncateMessage(context.bundles.LastSuspendedFor(*key)->message + "; " +
                                       NextBuildOf(context, *key))};
  }
  if (auto failed = FailedNodes(context)) {
    return *std::move(failed);
  }
  return {.holds = false, .reason = std::string(reason::kHealthy), .message = "no problem found"};
}

// Returns the condition Ready. It may be True before the warmup is warm; its message then adds that
// the warmup is not warm yet.
api::ConditionUpdate EvaluateReady(const DistributedContext& context,
                                   const api::ConditionUpdate& warm) {
  api::ConditionUpdate ready = context.acceptance.ready;
  if (!ready.holds) {
    return ready;
  }
  // The warmup is accepted, but no admission policy or webhook is installed to inject its pods.
  if (!context.in.admission_missing.empty()) {
    return {.reason = std::string(reason::kNoAdmission), .message = context.in.admission_missing};
  }
  if (!warm.holds) {
    ready.message += fmt::format("; the CacheWarmup is not warm yet ({})", warm.reason);
  }
  return ready;
}

void UpdateCondition(const Context& context, std::string_view type,
                     const api::ConditionUpdate& verdict, StatusDecision& out) {
  const api::Condition* before = api::FindCondition(context.in.warmup.status.conditions, type);
  const bool same = before != nullptr && before->reason == verdict.reason &&
                    before->status == (verdict.holds ? "True" : "False");
  api::SetCondition(out.conditions, type, verdict, context.in.warmup.generation, context.stamp());
  // A condition that is set for the first time, with the reason Healthy, gets no event.
  const bool changed = !same && !(before == nullptr && verdict.reason == reason::kHealthy);
  if (changed) {
    const bool good = verdict.holds != (type == "Degraded");
    const bool passing = verdict.reason == reason::kPreparingNodes ||
                         verdict.reason == reason::kAdmissionDryRun ||
                         verdict.reason == reason::kPaused || type == "Warm";
    out.effects.RecordEvent(context.in.warmup, !good && !passing, verdict.reason, verdict.message);
  }
}

std::string SavedText(const api::Starts& starts) {
  if (starts.recent.empty()) {
    return "";
  }
  const double net = starts.saved_seconds - starts.lost_seconds;
  const auto whole = std::chrono::seconds(static_cast<int64_t>(net < 0 ? -net : net));
  return (net < 0 && whole.count() > 0 ? "-" : "") + FormatDuration(whole);
}

}  // namespace

// Planned together with the status, so that both change in one plan. Also removes the label while a
// warmup is being deleted: pods would otherwise be injected until its finalizer is removed.
std::optional<bool> DecideInjectLabel(const Context& context, const Acceptance& acceptance) {
  const auto& labels = context.in.warmup.labels;
  const auto label = labels.find(std::string(api::kInjectLabel));
  const bool has = label != labels.end();
  const bool is_current = acceptance.inject ? has && label->second == "true" : !has;
  return is_current ? std::nullopt : std::optional(acceptance.inject);
}

StatusDecision DecideStatus(const DistributedContext& context) {
  const api::WarmupStatus& present = context.in.warmup.status;
  StatusDecision out{.conditions = present.conditions};
  if (context.deleting()) {
    out.summary = present.summary;
    return out;
  }
  if (context.acceptance.injection) {
    out.warm_revisions = WarmRevisions(context);
  }
  const Spread spread = CountSpread(context);
  const api::ConditionUpdate warm = EvaluateWarm(context, spread);
  UpdateCondition(context, "Ready", EvaluateReady(context, warm), out);
  UpdateCondition(context, "Warm", warm, out);
  UpdateCondition(context, "Degraded", EvaluateDegraded(context), out);
  out.bundles_suspended = CountSuspendedBundles(context);
  out.summary = {.types = fmt::format("{}/{}", spread.targets_warm, spread.targets),
                 .nodes = fmt::format("{}/{}", spread.nodes_warm, spread.nodes),
                 .hit = ShareOf(context.starts.starts.counts, api::StartResult::kHit),
                 .partial = ShareOf(context.starts.starts.counts, api::StartResult::kPartial),
                 .saved = SavedText(context.starts.starts)};
  return out;
}

}  // namespace cachewarm::plan
