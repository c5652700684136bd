// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/render/affinity.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kQuietHold = std::chrono::seconds(2);
// Waiting for the last nodes does not pay: released when at most one in so many is still cold.
constexpr size_t kWarmPerComing = 10;

// What waiting can bring to a node, for the pods of one shape and key.
enum class Prospect { kWarm, kComing, kStuck, kCold };

bool IsBuilding(const Round& round, const LiveKey& key) {
  const api::BuilderStatus* builder = FindBuilder(round.out.status, key.key);
  return builder != nullptr && IsRunning(*builder);
}

// A failed fetch is tried again by the agent, and an unreachable store waits for the deadline; a
// full disk or a refused bundle does not pass by waiting.
Prospect ProspectOfFetch(const NodeState& node, const api::NodeBundle* reported) {
  if (!node.view->agent_ready) {
    return Prospect::kCold;
  }
  if (reported == nullptr || reported->state != api::BundleState::kFailed) {
    return Prospect::kComing;
  }
  return reported->reason == reason::kFetchFailed ? Prospect::kStuck : Prospect::kCold;
}

Prospect ProspectOf(const Round& round, const NodeState& node, const PodFactors& factors) {
  const LiveKey* key = FindKey(round, node.target, factors);
  if (key == nullptr || !node.prepared) {
    return Prospect::kCold;
  }
  const api::BundleStatus* bundle = BundleFor(round, *key);
  if (bundle == nullptr) {
    return IsBuilding(round, *key) ? Prospect::kComing : Prospect::kCold;
  }
  if (IsActive(node, bundle->digest)) {
    return Prospect::kWarm;
  }
  return ProspectOfFetch(node, ReportedBundle(node, bundle->digest));
}

// Where pods of one shape and key could go now.
struct Places {
  std::vector<size_t> warm;
  std::vector<size_t> coming;
  std::vector<size_t> stuck;
  std::vector<size_t> cold;
  std::vector<size_t> unusable;  // no usable directory: a pod that mounts it could crash
};

// Pods of one template share their places; what has been taken since is dropped again.
using PlacesOf = std::map<std::pair<const PodShape*, PodFactors>, Places>;

Places FindPlaces(const Round& round, const PodView& pod) {
  Places out;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.possible && node.ready && !node.prepared) {
      out.unusable.push_back(i);
      continue;
    }
    if (!CanTake(round, i, *pod.shape)) {
      continue;
    }
    switch (ProspectOf(round, node, pod.factors)) {
      case Prospect::kWarm:
        out.warm.push_back(i);
        break;
      case Prospect::kComing:
        out.coming.push_back(i);
        break;
      case Prospect::kStuck:
        out.stuck.push_back(i);
        break;
      case Prospect::kCold:
        out.cold.push_back(i);
        break;
    }
  }
  return out;
}

const Places& PlacesFor(const Round& round, const PodView& pod, PlacesOf& known) {
  auto found = known.find({pod.shape.get(), pod.factors});
  if (found == known.end()) {
    found = known.emplace(std::pair(pod.shape.get(), pod.factors), FindPlaces(round, pod)).first;
    return found->second;
  }
  for (std::vector<size_t>* list :
       {&found->second.warm, &found->second.coming, &found->second.stuck, &found->second.cold}) {
    std::erase_if(*list, [&](size_t node) {
      return round.taken.contains(node) && !CanTake(round, node, *pod.shape);
    });
  }
  return found->second;
}

std::vector<std::string> Hostnames(const Round& round, const std::vector<size_t>& nodes) {
  std::vector<std::string> out;
  for (const size_t node : nodes) {
    if (out.size() < render::kHostnamesMax) {
      out.push_back(round.nodes[node].hostname);
    }
  }
  return out;
}

// Kept off unusable nodes, unless that would leave it nowhere to go.
std::vector<std::string> Excluded(const Round& round, const Places& places) {
  const bool elsewhere = std::any_of(round.nodes.begin(), round.nodes.end(), [](const auto& node) {
    return node.possible && node.ready && node.prepared;
  });
  return elsewhere ? Hostnames(round, places.unusable) : std::vector<std::string>();
}

double HeldSeconds(const Round& round, const api::Pod& pod) {
  const auto held = std::max(round.in.now - pod.meta.created, Duration{0});
  return std::chrono::duration<double>(held).count();
}

struct Choice {
  std::string_view reason;
  std::vector<size_t> preferred;
};

void Release(Round& round, const PodView& pod, const Places& places, const Choice& choice) {
  GateRelease release{.pod = pod.pod,
                      .reason = std::string(choice.reason),
                      .held_seconds = HeldSeconds(round, *pod.pod),
                      .preferred = Hostnames(round, choice.preferred),
                      .excluded = Excluded(round, places)};
  if (release.held_seconds >= std::chrono::duration<double>(kQuietHold).count()) {
    TellAboutPod(round, *pod.pod, choice.reason,
                 fmt::format("released after {:.0f} s", release.held_seconds));
  }
  round.out.releases.push_back(std::move(release));
}

// A preference is worth its patch only where the pod could still land cold.
std::vector<size_t> PreferWarm(const Places& places) {
  const bool all_warm = places.coming.empty() && places.stuck.empty() && places.cold.empty();
  return all_warm ? std::vector<size_t>() : places.warm;
}

std::optional<Choice> ChooseFor(const Round& round, const PodView& pod, const Places& places) {
  const Duration most = std::chrono::seconds(round.in.warmup.spec.gate.max_hold_seconds);
  if (round.in.now >= pod.pod->meta.created + most) {
    return Choice{reason::kReleasedDeadline, places.warm};
  }
  const bool waits = places.coming.size() * kWarmPerComing > places.warm.size() ||
                     (places.warm.empty() && !places.stuck.empty());
  if (waits) {
    return std::nullopt;
  }
  if (!places.warm.empty()) {
    return Choice{reason::kReleasedWarm, PreferWarm(places)};
  }
  return Choice{places.cold.empty() ? reason::kReleasedNoRoom : reason::kReleasedNoGain, {}};
}

void Hold(Round& round, const PodView& pod) {
  const api::ObjectMeta& meta = pod.pod->meta;
  const WallTime deadline =
      meta.created + std::chrono::seconds(round.in.warmup.spec.gate.max_hold_seconds);
  WakeAt(round, deadline);
  if (meta.annotations.contains(std::string(api::kHeldUntilAnnotation))) {
    return;
  }
  if (round.in.now < meta.created + kQuietHold) {
    WakeAt(round, meta.created + kQuietHold);
    return;
  }
  round.out.annotations.push_back({.ns = meta.ns,
                                   .pod = meta.name,
                                   .uid = meta.uid,
                                   .key = std::string(api::kHeldUntilAnnotation),
                                   .value = FormatTime(deadline)});
  TellAboutPod(round, *pod.pod, reason::kHeld,
               fmt::format("waits for a warm node until {} at the latest", FormatTime(deadline)));
}

// Pods released earlier that no node has yet will take room too.
void CountUnbound(Round& round) {
  for (const PodView& pod : round.pods) {
    if (!pod.ours || pod.held || pod.finished || !pod.pod->node.empty()) {
      continue;
    }
    for (size_t i = 0; i < round.nodes.size(); ++i) {
      if (round.nodes[i].possible && CanTake(round, i, round.pod_template.shape)) {
        Take(round, i, round.pod_template.shape);
        break;
      }
    }
  }
}

const Candidate* CandidateFor(const Round& round, size_t pod) {
  for (const Candidate& candidate : round.candidates) {
    if (candidate.pod == pod) {
      return &candidate;
    }
  }
  return nullptr;
}

}  // namespace

void DecideGates(Round& round) {
  const bool withdrawn = round.deleting() || round.paused() || !round.acceptance.inject ||
                         round.in.warmup.spec.gate.mode == api::GateMode::kOff;
  CountUnbound(round);
  PlacesOf known;
  for (size_t i = 0; i < round.pods.size(); ++i) {
    const PodView& pod = round.pods[i];
    if (!pod.held || pod.pod->meta.deleting) {
      continue;
    }
    const Places& places = PlacesFor(round, pod, known);
    if (withdrawn) {
      Release(round, pod, places, {reason::kReleasedWithdrawn, places.warm});
      continue;
    }
    if (const Candidate* candidate = CandidateFor(round, i)) {
      Release(round, pod, places,
              {reason::kReleasedBuilder, round.targets[candidate->target].nodes});
      continue;
    }
    const auto choice = ChooseFor(round, pod, places);
    if (!choice) {
      Hold(round, pod);
      continue;
    }
    Release(round, pod, places, *choice);
    if (choice->reason == reason::kReleasedWarm) {
      Take(round, places.warm.front(), *pod.shape);
    }
  }
}

}  // namespace cachewarm::plan
