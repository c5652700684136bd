// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/transitions.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <utility>

#include "lib/api/reasons.h"

namespace cachewarm::plan {
namespace {

constexpr int kPhaseCount = static_cast<int>(BuildPhase::kFailed) + 1;
constexpr int kEventCount = static_cast<int>(BuildEvent::kProofRefused) + 1;

// A build in this phase.
api::BuilderStatus BuildIn(BuildPhase phase) {
  api::BuilderStatus out{.key = "k", .state = StateOf(phase)};
  switch (phase) {
    case BuildPhase::kNone:
      out.state = api::BuilderState::kFailed;
      break;
    case BuildPhase::kProving:
      out.proof = api::ProofStatus{};
      [[fallthrough]];
    case BuildPhase::kRanks:
      out.captured = api::CapturedBundle{};
      [[fallthrough]];
    case BuildPhase::kStarting:
    case BuildPhase::kPacking:
      out.node = "n1";
      break;
    case BuildPhase::kJob:
      out.job = "j";
      break;
    case BuildPhase::kCandidate:
    case BuildPhase::kCaptured:
    case BuildPhase::kFailed:
      break;
  }
  return out;
}

TEST(BuildTransitions, PhaseIsReadFromTheStatus) {
  for (const BuildPhase phase :
       {BuildPhase::kNone, BuildPhase::kCandidate, BuildPhase::kJob, BuildPhase::kStarting,
        BuildPhase::kPacking, BuildPhase::kRanks, BuildPhase::kProving}) {
    EXPECT_EQ(PhaseOf(BuildIn(phase)), phase) << Name(phase);
  }
  EXPECT_EQ(PhaseOf(BuildIn(BuildPhase::kCaptured)), BuildPhase::kNone);
  EXPECT_EQ(PhaseOf(BuildIn(BuildPhase::kFailed)), BuildPhase::kNone);
}

TEST(BuildTransitions, EveryPairHasAtMostOneRow) {
  std::set<std::pair<int, int>> pairs;
  for (const BuildTransition& row : BuildTransitions()) {
    for (int phase = 0; phase < kPhaseCount; ++phase) {
      if (row.from.Contains(static_cast<BuildPhase>(phase))) {
        EXPECT_TRUE(pairs.emplace(phase, static_cast<int>(row.event)).second)
            << Name(static_cast<BuildPhase>(phase)) << ": " << Name(row.event);
      }
    }
  }
}

TEST(BuildTransitions, EveryEventHasARowAndAName) {
  std::set<int> events;
  std::set<std::string_view> names;
  for (const BuildTransition& row : BuildTransitions()) {
    events.insert(static_cast<int>(row.event));
  }
  EXPECT_EQ(events.size(), static_cast<size_t>(kEventCount));
  for (int event = 0; event < kEventCount; ++event) {
    EXPECT_TRUE(names.insert(Name(static_cast<BuildEvent>(event))).second);
  }
  EXPECT_FALSE(names.contains(""));
}

// A build that has ended stays as it is until the next election.
TEST(BuildTransitions, OnlyEndsHaveAReason) {
  for (const BuildTransition& row : BuildTransitions()) {
    const bool ends = row.to == BuildPhase::kCaptured || row.to == BuildPhase::kFailed;
    EXPECT_EQ(!row.reason.empty(), ends) << Name(row.event);
    EXPECT_EQ(row.action != BuildAction::kNone, ends) << Name(row.event);
    EXPECT_FALSE(row.from.Contains(BuildPhase::kCaptured)) << Name(row.event);
    EXPECT_FALSE(row.from.Contains(BuildPhase::kFailed)) << Name(row.event);
  }
}

TEST(BuildTransitions, EveryRunningPhaseCanBeReachedAndLeft) {
  for (int i = 1; i < kPhaseCount; ++i) {
    const auto phase = static_cast<BuildPhase>(i);
    const bool ends = phase == BuildPhase::kCaptured || phase == BuildPhase::kFailed;
    bool reached = false;
    bool fails = false;
    for (const BuildTransition& row : BuildTransitions()) {
      reached = reached || row.to == phase;
      fails = fails || (row.from.Contains(phase) && row.to == BuildPhase::kFailed);
    }
    EXPECT_TRUE(reached) << Name(phase);
    EXPECT_EQ(fails, !ends) << Name(phase);
  }
}

TEST(BuildTransitions, AdvanceSetsStateAndReason) {
  for (const BuildTransition& row : BuildTransitions()) {
    for (int phase = 0; phase < kPhaseCount; ++phase) {
      if (!row.from.Contains(static_cast<BuildPhase>(phase))) {
        continue;
      }
      api::BuilderStatus builder = BuildIn(static_cast<BuildPhase>(phase));
      builder.reason = "before";
      EXPECT_EQ(&Advance(builder, row.event), &row);
      EXPECT_EQ(builder.state, StateOf(row.to)) << Name(row.event);
      EXPECT_EQ(builder.reason, row.reason) << Name(row.event);
    }
  }
}

TEST(BuildTransitions, PairWithoutRowIsAFault) {
  api::BuilderStatus builder = BuildIn(BuildPhase::kCandidate);
  EXPECT_THROW(Advance(builder, BuildEvent::kProven), std::logic_error);
  EXPECT_EQ(builder, BuildIn(BuildPhase::kCandidate));
}

}  // namespace
}  // namespace cachewarm::plan
