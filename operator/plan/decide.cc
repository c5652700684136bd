// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/decisions.h"
#include "operator/plan/plan.h"

namespace cachewarm::plan {

namespace {

// Even when nothing is due, the world is looked at again: a missed change heals.
constexpr Duration kRequeueMax = std::chrono::minutes(10);
constexpr Duration kRequeueMin = std::chrono::milliseconds(100);

}  // namespace

Plan Decide(const Snapshot& snapshot) {
  Round round(snapshot);
  round.out.status = snapshot.warmup.status;
  WakeAt(round, snapshot.now + kRequeueMax);
  ReadWorkload(round);
  FindNeverHeld(round);
  FindTargets(round);
  DecideAcceptance(round);
  DecideBuilders(round);
  DecideStarts(round);
  DecideDistribution(round);
  DecideGates(round);
  DecideFlag(round);
  DecideStatus(round);
  Plan& out = round.out;
  out.status_changed = !snapshot.warmup.deleting && !(out.status == snapshot.warmup.status);
  out.requeue_after = snapshot.warmup.deleting
                          ? std::nullopt
                          : std::optional(std::max(*out.requeue_after, kRequeueMin));
  return std::move(round.out);
}

}  // namespace cachewarm::plan
