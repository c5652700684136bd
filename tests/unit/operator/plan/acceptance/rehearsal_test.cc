// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <utility>

#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

// What the API server says of a pod with what we add: when it is asked, and when it refuses.
namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::Condition;
using fakes::HasEvent;
using fakes::OneNode;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

TEST(Acceptance, AsksForARehearsalBeforeItInjects) {
  SnapshotBuilder builder = OneNode();
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Rehearsing");
  EXPECT_FALSE(plan.status.injection.has_value());
  ASSERT_TRUE(plan.rehearsal.has_value());
  EXPECT_EQ((*plan.rehearsal->as_is)["metadata"]["annotations"]["cachewarm.io/warmup"], "-");
  EXPECT_EQ((*plan.rehearsal->injected)["spec"]["volumes"][0]["hostPath"]["path"],
            "/var/lib/cachewarm/models/llama/7d0f/image");
  EXPECT_FALSE(plan.set_inject_label.has_value()) << "there is no label to remove";
}

TEST(Acceptance, InjectsOnceTheRehearsalIsAllowed) {
  SnapshotBuilder builder = OneNode();
  builder.Rehearsed(Answer::kAllowed, Answer::kAllowed);
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Injecting");
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_EQ(plan.status.injection->labels, (std::map<std::string, std::string>{{"app", "llama"}}));
  EXPECT_EQ(plan.status.injection->container, "server");
  EXPECT_TRUE(plan.status.injection->gate);
  EXPECT_FALSE(plan.status.injection->env.empty());
  EXPECT_EQ(plan.set_inject_label, true);
  EXPECT_FALSE(plan.rehearsal.has_value());
  EXPECT_TRUE(HasEvent(plan, "Injecting"));
}

TEST(Acceptance, RehearsesAgainAfterTenMinutesWithoutWithdrawing) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted().Now(100 + 599);
  EXPECT_FALSE(builder.Decide().rehearsal.has_value());
  builder.Now(100 + 601);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.rehearsal.has_value());
  EXPECT_TRUE(plan.status.injection.has_value());
}

TEST(Acceptance, AChangedTemplateIsRehearsedAgain) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  const std::string before = builder.in().rehearsal.fingerprint;
  builder.pod_template()["spec"]["containers"][0]["args"] = {"--more"};
  const Plan plan = builder.Decide();
  ASSERT_TRUE(plan.rehearsal.has_value());
  EXPECT_NE(plan.rehearsal->fingerprint, before);
  EXPECT_TRUE(plan.status.injection.has_value()) << "goes on until an answer says otherwise";
}

struct AnswerCase {
  const char* name;
  Answer as_is;
  Answer injected;
  const char* reason;
};

class RehearsalAnswers : public testing::TestWithParam<AnswerCase> {};

TEST_P(RehearsalAnswers, OnlyAllowedAsItIsAndRefusedInjectedCountsAgainstUs) {
  SnapshotBuilder builder = OneNode();
  builder.Rehearsed(GetParam().as_is, GetParam().injected, "denied by x");
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, RehearsalAnswers,
    testing::Values(AnswerCase{"both", Answer::kAllowed, Answer::kAllowed, "Injecting"},
                    AnswerCase{"refused", Answer::kAllowed, Answer::kRefused, "InjectionRefused"},
                    AnswerCase{"both_refused", Answer::kRefused, Answer::kRefused, "Injecting"},
                    AnswerCase{"unknown", Answer::kUnknown, Answer::kUnknown, "Injecting"},
                    AnswerCase{"half", Answer::kUnknown, Answer::kRefused, "Injecting"},
                    AnswerCase{"odd", Answer::kRefused, Answer::kAllowed, "Injecting"}),
    [](const auto& each) { return each.param.name; });

TEST(Acceptance, AFailedCreateThatNamesUsWithdrawsAtOnce) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.in().create_failure = {.time = At(99), .message = "volume \"cachewarm\" is not allowed"};
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "InjectionRefused");
  EXPECT_FALSE(plan.status.injection.has_value());
  EXPECT_EQ(plan.set_inject_label, false);
  EXPECT_NE(Condition(plan, "Ready")->message.find("not allowed"), std::string::npos);
}

TEST(Acceptance, StaysWithdrawnUntilAYoungerRehearsalIsAllowed) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.in().create_failure = {.time = At(99), .message = "hostPath is forbidden"};
  const Plan refused = builder.Decide();
  builder.status() = refused.status;
  builder.in().create_failure = {};
  builder.Now(110);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "InjectionRefused");
  builder.Now(800).Rehearsed(Answer::kAllowed, Answer::kAllowed);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

// Beyond its quota a namespace refuses the pod with and without us: that acquits nobody.
TEST(Acceptance, ARehearsalThatSaysNothingEndsNoWithdrawalForAnHour) {
  for (const auto& [as_is, injected] : {std::pair(Answer::kUnknown, Answer::kUnknown),
                                        std::pair(Answer::kAllowed, Answer::kUnknown)}) {
    SnapshotBuilder builder = OneNode();
    builder.Accepted();
    builder.in().create_failure = {.time = At(99), .message = "hostPath is forbidden"};
    builder.status() = builder.Decide().status;
    builder.in().create_failure = {};
    builder.Now(800).Rehearsed(as_is, injected);
    EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "InjectionRefused");
    builder.Now(100 + 3601).Rehearsed(as_is, injected);
    EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
  }
}

TEST(Acceptance, AChangeOfTheSpecIsLookedAtAtOnceAfterARefusal) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.in().create_failure = {.time = At(99), .message = "hostPath is forbidden"};
  builder.status() = builder.Decide().status;
  builder.in().create_failure = {};
  builder.warmup().generation = 2;
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

}  // namespace
}  // namespace cachewarm::plan
