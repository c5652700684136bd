// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/budget.h"
#include "operator/plan/gates/economy.h"
#include "operator/plan/gates/groups.h"
#include "operator/plan/gates/never_held.h"
#include "operator/plan/gates/places.h"
#include "operator/render/affinity.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Mode Hold: waiting for the last nodes does not pay: released when at most one in so many is still
// cold.
constexpr size_t kWarmPerComing = 10;
constexpr size_t kExcludedTogether = 200'000;  // hostnames in one plan

struct Choice {
  std::string_view reason;
  std::vector<size_t> preferred;
};

// What becomes of one held pod: released by `choice`, else held until looked at again.
struct Verdict {
  size_t pod = 0;
  WallTime deadline{};
  std::optional<Choice> choice;
  bool kept_off = false;  // the unusable nodes
};

struct Desk {
  Round& round;
  Economy economy;
  Budgets budgets;
  PlacesOf places;
  bool withdrawn = false;
};

double HeldSeconds(const Round& round, const api::Pod& pod) {
  const auto held = std::max(round.in.now - pod.meta.created, Duration{0});
  return std::chrono::duration<double>(held).count();
}

// A preference is worth its patch only where the pod could still land cold.
std::vector<size_t> PreferWarm(const Places& places) {
  const bool all_warm = places.coming.empty() && places.stuck.empty() && places.cold.empty();
  return all_warm ? std::vector<size_t>() : places.warm;
}

// Kept off unusable nodes, unless that would leave it nowhere to go, or without room: a rollout
// could wait for ever beside an idle node.
bool IsKeptOff(const Round& round, const Places& places, const PodShape& shape) {
  const bool elsewhere = std::any_of(round.nodes.begin(), round.nodes.end(), [](const auto& node) {
    return node.possible && node.ready && node.prepared;
  });
  const auto& unusable = places.unusable;
  return elsewhere && !unusable.empty() &&
         (!places.none() || std::none_of(unusable.begin(), unusable.end(),
                                         [&](size_t node) { return CanTake(round, node, shape); }));
}

// Of thousands of pods none names thousands of nodes.
size_t ExcludedMost(size_t pods) {
  return std::clamp(kExcludedTogether / std::max<size_t>(pods, 1), render::kPreferredMax,
                    render::kRequiredMax);
}

// A pod that waits will need room as well: those that find none any more have to be seen by the
// autoscaler, which does not see held ones.
void KeepRoom(Round& round, const Places& places, const PodShape& shape) {
  if (!places.coming.empty()) {
    Take(round, places.coming.front().node, shape);
  } else if (!places.stuck.empty()) {
    Take(round, places.stuck.front(), shape);
  } else if (!places.warm.empty()) {
    Take(round, places.warm.front(), shape);
  }
}

Choice GiveUp(const Places& places) {
  if (!places.warm.empty()) {
    return {reason::kReleasedWarm, PreferWarm(places)};
  }
  return {places.none() ? reason::kReleasedNoRoom : reason::kReleasedNoGain, {}};
}

// Mode Hold: until warm.
std::optional<Choice> ChooseToHold(Desk& desk, const PodView& pod, const Places& places) {
  const bool waits = places.coming.size() * kWarmPerComing > places.warm.size() ||
                     (places.warm.empty() && !places.stuck.empty());
  if (!waits) {
    return GiveUp(places);
  }
  KeepRoom(desk.round, places, *pod.shape);
  return std::nullopt;
}

// Mode Auto: while waiting for the node that is warm first is cheaper than starting cold.
std::optional<Choice> ChooseByGain(Desk& desk, const PodView& pod, const Places& places,
                                   WallTime deadline) {
  Round& round = desk.round;
  if (!places.warm.empty()) {
    return GiveUp(places);
  }
  for (const Coming& coming : places.coming) {
    const LiveKey* key = FindKey(round, round.nodes[coming.node].target, pod.factors);
    if (key == nullptr || !coming.forecast) {
      continue;
    }
    const Stake stake{
        .created = pod.pod->meta.created, .deadline = deadline, .gain = desk.economy.GainOf(*key)};
    if (Pays(stake, *coming.forecast, round.in.now)) {
      WakeAt(round, PaysUntil(stake, *coming.forecast, round.in.now));
      Take(round, coming.node, *pod.shape);
      return std::nullopt;
    }
  }
  return GiveUp(places);
}

const Candidate* CandidateFor(const Round& round, size_t pod) {
  for (const Candidate& candidate : round.candidates) {
    if (candidate.pod == pod) {
      return &candidate;
    }
  }
  return nullptr;
}

std::optional<Choice> Choose(Desk& desk, size_t index, WallTime deadline) {
  Round& round = desk.round;
  const PodView& pod = round.pods[index];
  const Places& places = desk.places.For(pod);
  if (desk.withdrawn) {
    return Choice{reason::kReleasedWithdrawn, PreferWarm(places)};
  }
  if (const std::string_view never = WhyNeverHeld(round, *pod.pod); !never.empty()) {
    // Somebody else may have fixed by now what such a pod looks like.
    const bool other = never == reason::kReleasedOtherGate;
    return Choice{never, other ? std::vector<size_t>() : PreferWarm(places)};
  }
  if (const Candidate* candidate = CandidateFor(round, index)) {
    return Choice{reason::kReleasedBuilder, round.targets[candidate->target].nodes};
  }
  if (round.in.now >= deadline) {
    return Choice{reason::kReleasedDeadline, PreferWarm(places)};
  }
  return round.in.warmup.spec.gate.mode == api::GateMode::kHold
             ? ChooseToHold(desk, pod, places)
             : ChooseByGain(desk, pod, places, deadline);
}

Verdict Judge(Desk& desk, size_t index) {
  Round& round = desk.round;
  const PodView& pod = round.pods[index];
  const WallTime deadline = desk.budgets.DeadlineOf(*pod.pod);
  Verdict out{.pod = index, .deadline = deadline, .choice = Choose(desk, index, deadline)};
  const Places& places = desk.places.For(pod);
  const Candidate* candidate = CandidateFor(round, index);
  const bool has_room = candidate != nullptr && candidate->has_room;
  out.kept_off = has_room || IsKeptOff(round, places, *pod.shape);
  if (out.choice && out.choice->reason == reason::kReleasedWarm) {
    Take(round, places.warm.front(), *pod.shape);
  }
  return out;
}

// Of a group all are held or none: one that is free, by now or since long, takes the others along,
// whichever warmup it is of.
void KeepGroupsTogether(const Round& round, std::vector<Verdict>& verdicts) {
  std::set<std::string> free = round.in.groups_free_elsewhere;
  for (const PodView& pod : round.pods) {
    if (!pod.held && !pod.finished && !pod.pod->meta.deleting && !pod.of_job) {
      free.insert(GroupOf(*pod.pod));
    }
  }
  for (const Verdict& verdict : verdicts) {
    if (verdict.choice) {
      free.insert(GroupOf(*round.pods[verdict.pod].pod));
    }
  }
  free.erase("");
  for (Verdict& verdict : verdicts) {
    if (!verdict.choice && free.contains(GroupOf(*round.pods[verdict.pod].pod))) {
      verdict.choice = Choice{reason::kReleasedGroup, {}};
    }
  }
}

void Release(Desk& desk, const Verdict& verdict, size_t excluded_most) {
  Round& round = desk.round;
  const PodView& pod = round.pods[verdict.pod];
  GateRelease release{
      .pod = pod.pod,
      .reason = std::string(verdict.choice->reason),
      .held_seconds = HeldSeconds(round, *pod.pod),
      .preferred = Hostnames(round, verdict.choice->preferred, render::kPreferredMax)};
  if (verdict.kept_off) {
    release.excluded = Hostnames(round, desk.places.For(pod).unusable, excluded_most);
  }
  release.event = AboutPod(*pod.pod, release.reason,
                           fmt::format("released after {:.0f} s", release.held_seconds));
  round.out.releases.push_back(std::move(release));
}

void Hold(Round& round, const PodView& pod, WallTime deadline) {
  const api::ObjectMeta& meta = pod.pod->meta;
  WakeAt(round, deadline);
  if (meta.annotations.contains(api::kHeldUntilAnnotation)) {
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
                                   .value = FormatTime(deadline),
                                   .held = pod.pod});
  round.out.events.push_back(
      AboutPod(*pod.pod, reason::kHeld,
               fmt::format("waits for a warm node until {} at the latest", FormatTime(deadline))));
}

// A builder is the first that the scheduler sees: another pod that was let go with it would take
// the room it was elected for.
void PutBuildersFirst(std::vector<GateRelease>& releases) {
  std::stable_partition(releases.begin(), releases.end(), [](const GateRelease& release) {
    return release.reason == reason::kReleasedBuilder;
  });
}

// Pods released earlier that no node has yet will take room too. All are taken for pods of the
// template, so that a node which cannot take one of them takes none after it.
void CountUnbound(Round& round) {
  const PodShape& shape = round.pod_template.shape;
  size_t node = 0;
  const auto is_full = [&] { return !round.nodes[node].possible || !CanTake(round, node, shape); };
  for (const PodView& pod : round.pods) {
    if (!pod.ours || pod.held || pod.finished || !pod.pod->node.empty() || HasOtherGate(*pod.pod)) {
      continue;
    }
    while (node < round.nodes.size() && is_full()) {
      ++node;
    }
    if (node == round.nodes.size()) {
      return;
    }
    Take(round, node, shape);
  }
}

}  // namespace

void DecideGates(Round& round) {
  CountUnbound(round);
  const Economy economy(round);
  Desk desk{.round = round,
            .economy = economy,
            .budgets = Budgets(round.in.pods, LongestHold(round.in.warmup, round.in.promises)),
            .places = PlacesOf(round, economy),
            .withdrawn = round.deleting() || round.paused() || !round.acceptance.inject ||
                         round.in.warmup.spec.gate.mode == api::GateMode::kOff};
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < round.pods.size(); ++i) {
    const PodView& pod = round.pods[i];
    if (pod.held && !pod.of_another && !pod.pod->meta.deleting) {
      verdicts.push_back(Judge(desk, i));
    }
  }
  KeepGroupsTogether(round, verdicts);
  const size_t excluded_most = ExcludedMost(verdicts.size());
  for (const Verdict& verdict : verdicts) {
    if (verdict.choice) {
      Release(desk, verdict, excluded_most);
    } else {
      Hold(round, round.pods[verdict.pod], verdict.deadline);
    }
  }
  PutBuildersFirst(round.out.releases);
}

}  // namespace cachewarm::plan
