// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/decide.h"

#include <algorithm>
#include <utility>

#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace {

// Reconcile periodically even when nothing is due, so that a missed change is noticed.
constexpr Duration kRequeueMax = std::chrono::minutes(10);
constexpr Duration kRequeueMin = std::chrono::milliseconds(100);

// The results of all stages after Observe().
struct Results {
  Acceptance acceptance;
  Builds builds;
  CountedStarts starts;
  Distribution distribution;
  GateDecisions gates;
  GateInjection gate_injection;
  StatusDecision status;
};

// Returns the desired status. That of a warmup that is being deleted is never written.
api::WarmupStatus MakeStatus(const Context& context, Results& results) {
  api::WarmupStatus out{.observed_generation = context.in.warmup.generation,
                        .conditions = std::move(results.status.conditions),
                        .min_available = context.hold.min_available,
                        .injection = std::move(results.acceptance.injection),
                        .suspension = std::move(results.acceptance.suspension),
                        .admitted = context.pod_template.admitted,
                        .bundles = results.distribution.bundles.published(),
                        .suspended_bundles = results.distribution.bundles.suspended(),
                        .builders = std::move(results.distribution.builders),
                        .harvests = std::move(results.builds.harvests),
                        .starts = std::move(results.starts.starts),
                        .summary = std::move(results.status.summary)};
  if (out.injection) {
    out.injection->gate = results.gate_injection.add_gate;
    out.injection->warm_revisions = std::move(results.status.warm_revisions);
  }
  return out;
}

Effects JoinEffects(const Context& context, Results& results) {
  Effects out;
  out.RequeueAt(context.in.now + kRequeueMax);
  out.RequeueAt(results.acceptance.recheck_at);
  for (Effects* effects :
       {&results.builds.effects, &results.starts.effects, &results.distribution.effects,
        &results.gates.effects, &results.gate_injection.effects, &results.status.effects}) {
    out.Join(std::move(*effects));
  }
  return out;
}

Plan Assemble(const Context& context, Results results) {
  const api::CacheWarmup& warmup = context.in.warmup;
  Effects effects = JoinEffects(context, results);
  Plan out;
  out.starts_counted = std::move(results.starts.counted);
  out.engines_reported = std::move(results.starts.engines_reported);
  out.log_reads = std::move(results.starts.log_reads);
  out.builds_finished = std::move(effects.builds_finished);
  out.events = std::move(effects.events);
  out.set_inject_label = DecideInjectLabel(context, results.acceptance);
  out.nodes = std::move(results.distribution.entries);
  out.annotations = std::move(effects.annotations);
  out.releases = std::move(results.gates.releases);
  out.jobs_to_create = std::move(results.builds.jobs_to_create);
  out.jobs_to_delete = std::move(results.builds.jobs_to_delete);
  out.bundles_suspended = results.status.bundles_suspended;
  out.dry_run = std::move(results.acceptance.dry_run);
  out.build_requests = std::move(results.builds.requests);
  out.status = MakeStatus(context, results);
  out.status_changed = !warmup.deleting && !(out.status == warmup.status);
  if (!warmup.deleting) {
    out.requeue_after = std::max(*effects.requeue_at - context.in.now, kRequeueMin);
  }
  return out;
}

}  // namespace

Plan Decide(const Snapshot& snapshot) {
  const Observed observed = Observe(snapshot);
  const Context context(snapshot, observed);
  Acceptance acceptance = DecideAcceptance(context);
  Builds builds = DecideBuilders(context, acceptance, DecideHungStarts(context));
  const PlanContext built(context, acceptance, builds);
  CountedStarts starts = DecideStarts(built);
  Distribution distribution = DecideDistribution(built, starts);
  const DistributedContext distributed(built, starts, distribution);
  GateDecisions gates = DecideGates(distributed);
  GateInjection gate_injection = DecideGateInjection(distributed, gates.reserved);
  StatusDecision status = DecideStatus(distributed);
  return Assemble(context, {.acceptance = std::move(acceptance),
                            .builds = std::move(builds),
                            .starts = std::move(starts),
                            .distribution = std::move(distribution),
                            .gates = std::move(gates),
                            .gate_injection = std::move(gate_injection),
                            .status = std::move(status)});
}

}  // namespace cachewarm::plan
