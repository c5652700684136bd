// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/captures/harvest_election.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::HarvestStatus;

namespace {

constexpr size_t kHarvestsMax = 64;

bool IsHarvesting(const HarvestStatus& harvest) {
  return harvest.started_time != WallTime{} && harvest.finished_time == WallTime{};
}

void RememberSet(HarvestStatus& harvest) {
  harvest.harvested_sets.push_back(harvest.set);
  if (harvest.harvested_sets.size() > api::kHarvestedSetsMax) {
    harvest.harvested_sets.erase(harvest.harvested_sets.begin());
  }
}

void EndHarvest(const Context& context, Builds& builds, HarvestStatus& harvest,
                std::string_view why, std::string message) {
  harvest.finished_time = context.stamp();
  harvest.reason = std::string(why);
  harvest.message = TruncateMessage(std::move(message));
  const bool is_problem = why == reason::kHarvestFailed || why == reason::kHarvestRefused;
  if (why != reason::kNothingNew) {
    builds.effects.RecordEvent(context.in.warmup, is_problem, why, harvest.message);
  }
}

// Ends the harvest because it can bring nothing, and none of the same set can.
void RefuseHarvest(const Context& context, Builds& builds, HarvestStatus& harvest,
                   std::string message) {
  RememberSet(harvest);
  EndHarvest(context, builds, harvest, reason::kHarvestRefused, std::move(message));
}

// Returns the bundle that serves `key` and was built for it; null if there is none. A bundle of
// another CPU class is harvested on the nodes of its own.
const api::BundleStatus* OwnBundle(const Bundles& bundles, const LiveKey& key) {
  const api::BundleStatus* bundle = bundles.For(key);
  return bundle != nullptr && bundle->key == key.key ? bundle : nullptr;
}

// Returns why no harvest of the warmup may run, for users; empty if one may.
std::string WarmupRefusal(const Context& context) {
  if (context.paused()) {
    return "spec.paused is set";
  }
  if (NeedsProof(context.in.warmup.spec)) {
    return "spec.compile.proof is Engine, and only the bundle of a builder Job can be proven; "
           "remove spec.harvest or spec.compile.proof";
  }
  return "";
}

// ---- one harvest --------------------------------------------------------------------------------

api::CaptureRequest MakeHarvestRequest(const Context& context, const LiveKey& key,
                                       const HarvestStatus& harvest) {
  const PodView* pod = FindPod(context, harvest.pod_uid);
  return {
      .id = fmt::format("{}-{}-h{}", harvest.pod_uid, fingerprint::Key8(key.key), harvest.number),
      .warmup_uid = context.uid(),
      .pod_uid = harvest.pod_uid,
      .run_as = harvest.run_as,
      .key = key.key,
      .factors = key.factors,
      .settle_seconds = context.in.warmup.spec.compile.settle_seconds,
      .started_time = harvest.started_time,
      .ready_time = harvest.started_time,
      .base_digest = harvest.base_digest,
      // A pod that is gone may have belonged to a group: its autotune results stay out too.
      .grouped = pod == nullptr || !model::GroupOf(*pod->pod).empty(),
      .generation = harvest.generation};
}

struct HarvestAnswer {
  bool has_node = false;
  size_t node = 0;                             // index into Context::nodes
  const api::CaptureStatus* status = nullptr;  // null: the agent has not answered
};

HarvestAnswer FindAnswer(const Context& context, const HarvestStatus& harvest,
                         const std::string& id) {
  HarvestAnswer out;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.view->node->meta.name != harvest.node || node.cache == nullptr) {
      continue;
    }
    out = {.has_node = true, .node = i};
    const auto& requests = node.cache->spec.captures;
    const bool is_requested = std::any_of(requests.begin(), requests.end(), [&](const auto& each) {
      return each.id == id && each.base_digest == harvest.base_digest;
    });
    for (const api::CaptureStatus& status : node.cache->status.captures) {
      if (is_requested && status.id == id) {
        out.status = &status;
      }
    }
  }
  return out;
}

// Replaces the bundle of the key by the harvested one, which has all files of it. Everything that
// is known about the build and about starts with the bundle stays true.
void PublishHarvest(const Context& context, Builds& builds, const api::BundleStatus& base,
                    const api::CaptureStatus& answer, HarvestStatus& harvest) {
  api::BundleStatus bundle = base;
  bundle.digest = answer.digest;
  bundle.bytes = answer.bytes;
  bundle.files = answer.files;
  bundle.native = answer.native;
  bundle.harvested_time = context.stamp();
  bundle.extends.push_back(base.digest.ToString());
  if (bundle.extends.size() > api::kExtendedBundlesMax) {
    bundle.extends.erase(bundle.extends.begin());
  }
  harvest.digest = answer.digest;
  RememberSet(harvest);
  EndHarvest(context, builds, harvest, reason::kHarvested,
             fmt::format("node {} added {} files of {} units that running pods compiled to the "
                         "bundle for {}, {}, which has {} files and {} bytes now: {}",
                         harvest.node, bundle.files - base.files, harvest.units, base.gpu_type,
                         base.cpu_class, bundle.files, bundle.bytes, answer.digest.ToString()));
  builds.bundles.Publish(std::move(bundle));
}

void CompleteHarvest(const Context& context, Builds& builds, const api::BundleStatus& base,
                     const api::CaptureStatus& answer, HarvestStatus& harvest) {
  if (answer.digest == base.digest) {
    RememberSet(harvest);
    EndHarvest(context, builds, harvest, reason::kNothingNew,
               fmt::format("the bundle has all files of the {} units already", harvest.units));
  } else if (builds.bundles.FindSuspended(answer.digest) != nullptr) {
    RefuseHarvest(context, builds, harvest,
                  fmt::format("the harvest produced the suspended bundle {} again",
                              answer.digest.ToString()));
  } else if (answer.native && !base.native) {
    RefuseHarvest(context, builds, harvest,
                  "the units have native host code, so that nodes of other CPU classes would lose "
                  "the bundle");
  } else {
    PublishHarvest(context, builds, base, answer, harvest);
  }
}

// Returns true if the harvest has ended because of the agent's failure.
bool EndAfterAnswer(const Context& context, Builds& builds, const api::CaptureStatus& answer,
                    HarvestStatus& harvest) {
  if (answer.state != api::CaptureState::kFailed || answer.reason == reason::kPublishFailed) {
    return false;
  }
  RefuseHarvest(context, builds, harvest, fmt::format("node {}: {}", harvest.node, answer.message));
  return true;
}

void FollowHarvest(const Context& context, Builds& builds, const LiveKey& key,
                   HarvestStatus& harvest) {
  const api::BundleStatus* base = OwnBundle(builds.bundles, key);
  if (base == nullptr || base->digest != harvest.base_digest) {
    return EndHarvest(context, builds, harvest, reason::kHarvestFailed,
                      "the bundle that it extends was replaced or suspended");
  }
  api::CaptureRequest request = MakeHarvestRequest(context, key, harvest);
  const HarvestAnswer answer = FindAnswer(context, harvest, request.id);
  if (!answer.has_node) {
    return EndHarvest(context, builds, harvest, reason::kHarvestFailed,
                      fmt::format("node {} is gone", harvest.node));
  }
  if (answer.status != nullptr) {
    if (answer.status->state == api::CaptureState::kPushed && !answer.status->digest.empty()) {
      return CompleteHarvest(context, builds, *base, *answer.status, harvest);
    }
    if (EndAfterAnswer(context, builds, *answer.status, harvest)) {
      return;
    }
  }
  const int seconds = context.in.warmup.spec.compile.timeout_seconds;
  const WallTime deadline = harvest.started_time + std::chrono::seconds(seconds);
  if (context.in.now >= deadline) {
    return EndHarvest(
        context, builds, harvest, reason::kHarvestFailed,
        fmt::format(
            "node {} has not finished after {} s (compile.timeoutSeconds): {}", harvest.node,
            seconds,
            answer.status == nullptr ? "the agent does not answer" : answer.status->message));
  }
  builds.effects.RequeueAt(deadline);
  builds.captures[answer.node].push_back(std::move(request));
}

// ---- the next harvest ---------------------------------------------------------------------------

// Sets that were harvested into an earlier bundle are in no bundle any more once a build has
// replaced it.
void ForgetReplaced(const api::BundleStatus& bundle, HarvestStatus& harvest) {
  if (harvest.digest != bundle.digest) {
    harvest.harvested_sets.clear();
    harvest.digest = bundle.digest;
  }
}

void BeginHarvest(const Context& context, Builds& builds, const LiveKey& key,
                  const HarvestCandidate& chosen, HarvestStatus& harvest) {
  harvest.number += 1;
  harvest.node = context.nodes[chosen.node].view->node->meta.name;
  harvest.pod_uid = chosen.pod->pod->meta.uid;
  harvest.run_as = chosen.offer->run_as;
  harvest.generation = chosen.offer->generation;
  harvest.units = chosen.offer->units;
  harvest.set = chosen.offer->set;
  harvest.base_digest = builds.bundles.For(key)->digest;
  harvest.started_time = context.stamp();
  harvest.finished_time = WallTime{};
  harvest.reason = std::string(reason::kHarvesting);
  harvest.message = fmt::format("node {} captures {} units that running pods compiled",
                                harvest.node, harvest.units);
  FollowHarvest(context, builds, key, harvest);
}

void ConsiderHarvest(const Context& context, Builds& builds, const LiveKey& key,
                     const std::string& refusal, HarvestStatus& harvest) {
  const api::BundleStatus* bundle = OwnBundle(builds.bundles, key);
  harvest.refusal.clear();
  if (bundle == nullptr) {
    if (harvest.number > 0 && builds.bundles.IsWithoutSuspended(key)) {
      harvest.refusal = "the bundle is suspended";
    }
    return;
  }
  ForgetReplaced(*bundle, harvest);
  const api::BuilderStatus* builder = FindBuilder(builds.builders, key.key);
  if (builder != nullptr && IsRunning(*builder)) {
    return;  // its bundle replaces the one that would be extended
  }
  const HarvestElection election = ElectHarvest(context, builds.bundles, key, harvest);
  if (!election.chosen || !refusal.empty()) {
    harvest.refusal = TruncateMessage(election.chosen ? refusal : election.refusal);
    return;
  }
  const WallTime next = harvest.number == 0
                            ? WallTime{}
                            : harvest.started_time + context.in.settings.harvest_interval;
  if (context.in.now < next) {
    builds.effects.RequeueAt(next);
    return;
  }
  BeginHarvest(context, builds, key, *election.chosen, harvest);
}

// Keeps the entries of keys that no node or pod has now, as long as they have a bundle: if the key
// comes back, the numbers in the ids of its requests and the harvested sets must go on.
void KeepOfAbsentKeys(const Context& context, Builds& builds) {
  for (HarvestStatus harvest : context.in.warmup.status.harvests) {
    const auto is_of_key = [&](const auto& each) { return each.key == harvest.key; };
    if (builds.harvests.size() >= kHarvestsMax || harvest.number == 0 ||
        std::any_of(context.keys.begin(), context.keys.end(), is_of_key) ||
        std::none_of(builds.bundles.published().begin(), builds.bundles.published().end(),
                     is_of_key)) {
      continue;
    }
    harvest.refusal.clear();
    if (IsHarvesting(harvest)) {
      EndHarvest(context, builds, harvest, reason::kHarvestFailed,
                 "no node or pod of the warmup has the key any more");
    }
    builds.harvests.push_back(std::move(harvest));
  }
}

HarvestStatus HarvestOf(const std::vector<HarvestStatus>& harvests, const std::string& key) {
  const auto found = std::find_if(harvests.begin(), harvests.end(),
                                  [&](const HarvestStatus& each) { return each.key == key; });
  return found == harvests.end() ? HarvestStatus{.key = key} : *found;
}

}  // namespace

void DecideHarvests(const Context& context, const Acceptance& acceptance, Builds& builds) {
  if (!context.in.warmup.spec.harvest) {
    return;
  }
  const std::string refusal = WarmupRefusal(context);
  // A running harvest outlives a moment without injection, such as the dry run of a new leader.
  const std::string begin_refusal =
      refusal.empty() && !acceptance.inject ? "no pod is injected (see condition Ready)" : refusal;
  for (const LiveKey& key : context.keys) {
    HarvestStatus harvest = HarvestOf(context.in.warmup.status.harvests, key.key);
    if (!IsHarvesting(harvest)) {
      ConsiderHarvest(context, builds, key, begin_refusal, harvest);
    } else if (!refusal.empty()) {
      EndHarvest(context, builds, harvest, reason::kHarvestRefused, refusal);
    } else {
      FollowHarvest(context, builds, key, harvest);
    }
    // A key without late units has no entry.
    if (harvest.number > 0 || !harvest.refusal.empty()) {
      builds.harvests.push_back(std::move(harvest));
    }
  }
  builds.harvests.resize(std::min(builds.harvests.size(), kHarvestsMax));
  KeepOfAbsentKeys(context, builds);
  std::sort(builds.harvests.begin(), builds.harvests.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
}

}  // namespace cachewarm::plan
