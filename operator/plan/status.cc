// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/plan/evidence/savings.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr size_t kWarmRevisionsMax = 16;

bool CountsForWarm(const NodeState& node) {
  return node.ready && (node.possible || node.target >= 0);
}

// Every Ready node that pods of `factors` could land on has their bundle active.
bool IsWarmEverywhere(const Round& round, const PodFactors& factors) {
  bool any = false;
  for (const NodeState& node : round.nodes) {
    if (!node.ready || !node.possible || IsWarming(*node.view->node)) {
      continue;
    }
    if (!node.prepared) {
      return false;
    }
    if (node.target >= 0) {
      any = true;
      if (!IsWarm(round, node, factors)) {
        return false;
      }
    }
  }
  return any;
}

std::vector<std::string> WarmRevisions(const Round& round) {
  // More than one: the leaders of a LeaderWorkerSet may have another image than its workers.
  std::map<std::string, std::vector<PodFactors>> factors;
  for (const PodView& pod : round.pods) {
    if (pod.ours && !pod.of_job && !pod.factors.image.empty()) {
      std::vector<PodFactors>& known = factors[pod.revision];
      if (std::find(known.begin(), known.end(), pod.factors) == known.end()) {
        known.push_back(pod.factors);
      }
    }
  }
  const bool warm_now = IsWarmEverywhere(round, round.pod_template.factors);
  const auto is_warm = [&](const PodFactors& each) {
    return each == round.pod_template.factors ? warm_now : IsWarmEverywhere(round, each);
  };
  std::vector<std::string> out;
  for (const std::string& revision : round.proven_revisions) {
    const auto known = factors.find(revision);
    if (known == factors.end() ? warm_now
                               : std::all_of(known->second.begin(), known->second.end(), is_warm)) {
      out.push_back(revision);
    }
  }
  // Those that still have pods matter most.
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

Spread CountSpread(const Round& round) {
  Spread out;
  for (const Target& target : round.targets) {
    size_t ready = 0;
    size_t warm = 0;
    for (const size_t index : target.nodes) {
      const NodeState& node = round.nodes[index];
      if (CountsForWarm(node)) {
        ++ready;
        warm += IsWarm(round, node, round.pod_template.factors) ? 1U : 0U;
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
  for (const LiveKey& key : round.keys) {
    if (key.current && BundleFor(round, key) == nullptr) {
      ++out.without_bundle;
      const api::BuilderStatus* builder = FindBuilder(round.out.status, key.key);
      out.building += builder != nullptr && IsRunning(*builder) ? 1U : 0U;
    }
  }
  return out;
}

api::Verdict WarmVerdict(const Round& round, const Spread& spread) {
  if (spread.targets > 0 && spread.targets == spread.targets_warm) {
    return {.holds = true,
            .reason = std::string(reason::kDistributed),
            .message = fmt::format("{} nodes have the bundle active", spread.nodes_warm)};
  }
  if (spread.building > 0) {
    return {.reason = std::string(reason::kBuilding),
            .message =
                fmt::format("{} of {} types are being compiled", spread.building, spread.targets)};
  }
  if (spread.without_bundle > 0 || spread.targets == 0) {
    return {.reason = std::string(reason::kNoBundle),
            .message = !round.job_refusal.empty()
                           ? round.job_refusal
                           : fmt::format("{} of {} types wait for a first "
                                         "pod that starts there",
                                         spread.without_bundle, spread.targets)};
  }
  return {.reason = std::string(reason::kDistributing),
          .message = fmt::format("{} of {} nodes have the bundle active", spread.nodes_warm,
                                 spread.nodes)};
}

const api::BuilderStatus* FindExhausted(const Round& round) {
  for (const LiveKey& key : round.keys) {
    if (key.current && IsExhausted(round, key)) {
      return FindBuilder(round.out.status, key.key);
    }
  }
  return nullptr;
}

std::optional<api::Verdict> FailedNodes(const Round& round) {
  size_t count = 0;
  std::string first;
  bool by_store = false;
  for (const NodeState& node : round.nodes) {
    if (!node.ready || node.reported == nullptr) {
      continue;
    }
    for (const api::NodeBundle& bundle : node.reported->bundles) {
      if (bundle.state == api::BundleState::kFailed) {
        ++count;
        if (first.empty()) {
          by_store = bundle.reason == reason::kFetchFailed;
          first = fmt::format("{}: {}", node.view->node->meta.name, bundle.message);
        }
        break;
      }
    }
  }
  if (count == 0) {
    return std::nullopt;
  }
  return api::Verdict{
      .holds = true,
      .reason = std::string(by_store ? reason::kStoreRefuses : reason::kNodesFailed),
      .message = fmt::format("{} nodes cannot have a bundle, first {}", count, first)};
}

api::Verdict DegradedVerdict(const Round& round) {
  if (const api::BuilderStatus* builder = FindExhausted(round)) {
    return {.holds = true,
            .reason = std::string(reason::kBuildFailed),
            .message = fmt::format("{} attempts for {}, {} failed; the last one: {}: {}",
                                   builder->attempt, builder->gpu_type, builder->cpu_class,
                                   builder->reason, builder->message)};
  }
  if (!round.store_refusal.empty()) {
    return {.holds = true,
            .reason = std::string(reason::kStoreRefuses),
            .message = round.store_refusal};
  }
  if (auto failed = FailedNodes(round)) {
    return *std::move(failed);
  }
  return {.holds = false, .reason = std::string(reason::kHealthy), .message = ""};
}

// All of ours is in order, but there is nobody to give it to the pods.
api::Verdict ReadyVerdict(const Round& round) {
  if (round.acceptance.ready.holds && !round.in.admission_missing.empty()) {
    return {.reason = std::string(reason::kNoAdmission), .message = round.in.admission_missing};
  }
  return round.acceptance.ready;
}

void Set(Round& round, std::string_view type, const api::Verdict& verdict) {
  auto& conditions = round.out.status.conditions;
  const api::Condition* before = api::FindCondition(round.in.warmup.status.conditions, type);
  const bool same = before != nullptr && before->reason == verdict.reason &&
                    before->status == (verdict.holds ? "True" : "False");
  api::SetCondition(conditions, type, verdict, round.in.warmup.generation, round.stamp());
  // What is well from the start is no news.
  const bool news = !same && !(before == nullptr && verdict.reason == reason::kHealthy);
  if (news) {
    const bool good = verdict.holds != (type == "Degraded");
    const bool passing = verdict.reason == reason::kPreparing ||
                         verdict.reason == reason::kRehearsing ||
                         verdict.reason == reason::kPaused || type == "Warm";
    Tell(round, !good && !passing, verdict.reason, verdict.message);
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

// Label and status withdraw together; a deleted object injects while a finalizer keeps it.
void SetLabel(Round& round) {
  const auto& labels = round.in.warmup.labels;
  const auto label = labels.find(std::string(api::kInjectLabel));
  const bool has = label != labels.end();
  const bool right = round.acceptance.inject ? has && label->second == "true" : !has;
  if (!right) {
    round.out.set_inject_label = round.acceptance.inject;
  }
}

}  // namespace

void DecideStatus(Round& round) {
  SetLabel(round);
  if (round.deleting()) {
    return;
  }
  api::WarmupStatus& status = round.out.status;
  status.observed_generation = round.in.warmup.generation;
  if (status.injection) {
    status.injection->warm_revisions = WarmRevisions(round);
  }
  const Spread spread = CountSpread(round);
  Set(round, "Ready", ReadyVerdict(round));
  Set(round, "Warm", WarmVerdict(round, spread));
  Set(round, "Degraded", DegradedVerdict(round));
  status.summary = {.types = fmt::format("{}/{}", spread.targets_warm, spread.targets),
                    .nodes = fmt::format("{}/{}", spread.nodes_warm, spread.nodes),
                    .hit = HitRate(status.starts.counts),
                    .saved = SavedText(status.starts)};
}

}  // namespace cachewarm::plan
