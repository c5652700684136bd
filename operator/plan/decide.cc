// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/decisions.h"
#include "operator/plan/plan.h"

namespace cachewarm::plan {

namespace {

// Reconcile periodically even when nothing is due, so that a missed change is noticed.
constexpr Duration kRequeueMax = std::chrono::minutes(10);
constexpr Duration kRequeueMin = std::chrono::milliseconds(100);

}  // namespace

Plan Decide(const Snapshot& snapshot) {
  PlanContext context(snapshot);
  context.out.status = snapshot.warmup.status;
  RequeueAt(context, snapshot.now + kRequeueMax);
  ReadWorkload(context);
  DecideNeverHeld(context);
  FindTargets(context);
  DecideAcceptance(context);
  DecideHungStarts(context);
  DecideBuilders(context);
  DecideStarts(context);
  DecideDistribution(context);
  DecideGates(context);
  DecideGateInjection(context);
  DecideStatus(context);
  Plan& out = context.out;
  out.status_changed = !snapshot.warmup.deleting && !(out.status == snapshot.warmup.status);
  out.requeue_after = snapshot.warmup.deleting
                          ? std::nullopt
                          : std::optional(std::max(*out.requeue_after, kRequeueMin));
  return std::move(context.out);
}

}  // namespace cachewarm::plan
