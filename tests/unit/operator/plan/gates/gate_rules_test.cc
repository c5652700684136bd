// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/gate_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/plan/gates/hold_deadline.h"
#include "tests/fakes/snapshot_builder.h"

// Reaches every row of the decision table of gates.
namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;
using Change = void (*)(SnapshotBuilder&);

// A node without a bundle, and the held pod "p".
SnapshotBuilder Held() {
  SnapshotBuilder builder;
  builder.warmup().spec.gate.mode = api::GateMode::kHold;
  builder.Node({.name = "n1"}).Accepted();
  builder.Bundle({.node = "n1"});
  builder.Pod({.name = "p", .held = true, .created = 98});
  return builder;
}

// Returns the rule that decides about the pod "p" when the stages before the gates have run.
const GateRule& RuleFor(const Snapshot& in) {
  const Observed observed = Observe(in);
  const Context context(in, observed);
  const Acceptance acceptance = DecideAcceptance(context);
  const Builds builds = DecideBuilders(context, acceptance, DecideHungStarts(context));
  const PlanContext built(context, acceptance, builds);
  const CountedStarts starts = DecideStarts(built);
  const Distribution distribution = DecideDistribution(built, starts);
  const DistributedContext distributed(built, starts, distribution);
  const WaitEstimator estimator(EstimatorInputs(distributed));
  const auto pod = std::find_if(context.pods.begin(), context.pods.end(),
                                [](const PodView& each) { return each.pod->meta.name == "p"; });
  const CandidateNodes candidates =
      FindCandidateNodes(distributed, estimator, builds.reserved, *pod->shape, pod->factors);
  const auto index = static_cast<size_t>(pod - context.pods.begin());
  const auto builder =
      std::find_if(builds.candidates.begin(), builds.candidates.end(),
                   [&](const BuilderCandidate& each) { return each.pod == index; });
  return FindGateRule(
      {.context = distributed,
       .estimator = estimator,
       .candidates = candidates,
       .pod = *pod,
       .builder = builder == builds.candidates.end() ? nullptr : &*builder,
       .deadline =
           HoldDeadlines(in.pods, MaxHold(in.warmup, in.constraints)).DeadlineOf(*pod->pod)});
}

void PodWith(SnapshotBuilder& builder, const std::map<std::string, std::string>& labels,
             const std::vector<std::string>& gates) {
  builder.Pod({.name = "p", .held = true, .created = 98, .labels = labels, .other_gates = gates});
}

// The change that makes each rule decide, in the order of the table.
constexpr Change kGateCases[] = {
    [](SnapshotBuilder& b) { b.warmup().spec.paused = true; },
    [](SnapshotBuilder& b) { b.in().constraints.recreate = true; },
    [](SnapshotBuilder& b) { PodWith(b, {}, {"example.com/gate"}); },
    [](SnapshotBuilder& b) {
      PodWith(b, {{"grove.io/podgang", "g"}}, {});
    },
    [](SnapshotBuilder& b) {
      b.status().min_available = 3;
      b.in().constraints = {.available = 2, .required = 3};
    },
    [](SnapshotBuilder& b) { b.status().bundles.clear(); },
    [](SnapshotBuilder& b) { b.Now(98 + 3600); },
    [](SnapshotBuilder&) {},
    [](SnapshotBuilder& b) {
      b.warmup().spec.gate.mode = api::GateMode::kAuto;
      b.reported("n1").bundles = {{.digest = fakes::DigestNamed("a"),
                                   .state = api::BundleState::kFetching,
                                   .bytes_done = 500,
                                   .fetch_seconds = 5}};
    },
    [](SnapshotBuilder& b) {
      b.reported("n1").bundles = {
          {.digest = fakes::DigestNamed("a"), .state = api::BundleState::kActive}};
    },
    [](SnapshotBuilder& b) { b.view("n1").free["pods"] = 0; },
    [](SnapshotBuilder& b) { b.view("n1").agent_ready = false; },
};

TEST(GateRules, EachRuleDecidesAboutAPod) {
  ASSERT_EQ(std::size(kGateCases), GateRules().size());
  for (size_t i = 0; i < GateRules().size(); ++i) {
    SnapshotBuilder builder = Held();
    kGateCases[i](builder);
    const GateRule& rule = RuleFor(builder.in());
    EXPECT_EQ(&rule, &GateRules()[i]) << "decided by: " << rule.when;
    const Plan plan = builder.Decide();
    const GateRelease* release = fakes::ReleaseOf(plan, "p");
    ASSERT_EQ(release != nullptr, rule.action == GateAction::kRelease) << rule.when;
    if (!rule.reason.empty()) {
      EXPECT_EQ(release->reason, rule.reason) << rule.when;
    }
  }
}

// The same for the workloads whose pods are never held.
constexpr Change kWorkloadCases[] = {
    [](SnapshotBuilder& b) { b.in().constraints.recreate = true; },
    [](SnapshotBuilder& b) { b.in().constraints.no_surge = true; },
    [](SnapshotBuilder& b) { b.in().constraints.in_order = true; },
    [](SnapshotBuilder& b) { b.in().constraints.job_deadline = true; },
    [](SnapshotBuilder& b) { b.in().constraints.queued = true; },
    [](SnapshotBuilder& b) {
      b.pod_template()["spec"]["schedulingGates"] = {{{"name", "example.com/gate"}}};
    },
    [](SnapshotBuilder& b) { b.pod_template()["metadata"]["labels"]["grove.io/podgang"] = "g"; },
};

TEST(GateRules, EachRuleOfTheWorkloadReleasesItsPods) {
  ASSERT_EQ(std::size(kWorkloadCases), WorkloadRules().size());
  for (size_t i = 0; i < WorkloadRules().size(); ++i) {
    SnapshotBuilder builder = Held();
    kWorkloadCases[i](builder);
    const WorkloadRule& rule = WorkloadRules()[i];
    EXPECT_EQ(Observe(builder.in()).hold.never_held, &rule) << rule.when;
    const Plan plan = builder.Decide();
    const GateRelease* release = fakes::ReleaseOf(plan, "p");
    ASSERT_NE(release, nullptr) << rule.when;
    EXPECT_EQ(release->reason, rule.reason) << rule.when;
  }
}

}  // namespace
}  // namespace cachewarm::plan
