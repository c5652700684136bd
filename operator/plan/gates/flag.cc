// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/decisions.h"
#include "operator/plan/gates/budget.h"
#include "operator/plan/gates/economy.h"
#include "operator/plan/gates/never_held.h"
#include "operator/plan/gates/places.h"

namespace cachewarm::plan {

namespace {

// A new pod would be held, and get warm by it.
bool WouldWait(Round& round, const Economy& economy, const Places& places) {
  const WallTime now = round.in.now;
  const Duration longest = LongestHold(round.in.warmup, round.in.promises);
  bool waits = false;
  for (const Coming& coming : places.coming) {
    const LiveKey* key =
        FindKey(round, round.nodes[coming.node].target, round.pod_template.factors);
    if (key == nullptr || !coming.forecast) {
      continue;
    }
    const Forecast& forecast = *coming.forecast;
    const Duration gain = std::min(economy.GainOf(*key), longest);
    waits = waits || Pays({.created = now, .deadline = now + longest, .gain = gain}, forecast, now);
    // It begins to pay, or stops to, without any change in the cluster.
    for (const WallTime turn : {forecast.end - gain, forecast.end + gain}) {
      if (!forecast.moves && turn > now) {
        WakeAt(round, turn);
      }
    }
  }
  return waits;
}

// A gate is added only while a held pod could gain by it: by waiting, or by what its release adds.
bool WantsGate(Round& round) {
  if (!round.may_hold() || round.paused()) {
    return false;
  }
  const Economy economy(round);
  const Places places =
      FindPlaces(round, economy, round.pod_template.shape, round.pod_template.factors);
  if (!places.unusable.empty()) {
    return true;  // kept off those nodes
  }
  if (places.none() || IsBelowPromise(round)) {
    return false;
  }
  if (round.in.warmup.spec.gate.mode == api::GateMode::kHold) {
    return std::any_of(round.keys.begin(), round.keys.end(),
                       [&](const LiveKey& key) { return key.current && !IsExhausted(round, key); });
  }
  const bool some_cold = !places.coming.empty() || !places.stuck.empty() || !places.cold.empty();
  return places.warm.empty() ? WouldWait(round, economy, places) : some_cold;
}

}  // namespace

void DecideFlag(Round& round) {
  if (!round.deleting() && round.out.status.injection) {
    round.out.status.injection->gate = WantsGate(round);
  }
}

}  // namespace cachewarm::plan
