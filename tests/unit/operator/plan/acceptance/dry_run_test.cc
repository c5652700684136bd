// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

// Admission dry runs of the injected pod: when they are requested, and the effect of a rejection.
namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::Condition;
using fakes::HasEvent;
using fakes::OneNode;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

TEST(Acceptance, RequestsDryRunBeforeInjecting) {
  SnapshotBuilder builder = OneNode();
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "AdmissionDryRun");
  EXPECT_FALSE(plan.status.injection.has_value());
  ASSERT_TRUE(plan.dry_run.has_value());
  EXPECT_EQ((*plan.dry_run->unmodified)["metadata"]["annotations"]["cachewarm.io/warmup"], "-");
  EXPECT_EQ((*plan.dry_run->injected)["spec"]["volumes"][0]["hostPath"]["path"],
            "/var/lib/cachewarm/models/llama/7d0f/image");
  EXPECT_FALSE(plan.set_inject_label.has_value()) << "there is no label to remove";
}

TEST(Acceptance, InjectsOnceDryRunIsAllowed) {
  SnapshotBuilder builder = OneNode();
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Injecting");
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_EQ(plan.status.injection->labels, (std::map<std::string, std::string>{{"app", "llama"}}));
  EXPECT_EQ(plan.status.injection->container, "server");
  EXPECT_TRUE(plan.status.injection->gate);
  EXPECT_FALSE(plan.status.injection->env.empty());
  EXPECT_EQ(plan.set_inject_label, true);
  EXPECT_FALSE(plan.dry_run.has_value());
  EXPECT_TRUE(HasEvent(plan, "Injecting"));
}

// torch would ignore TORCHINDUCTOR_REDIS_HOST if the URL of the agent's endpoint were set too.
TEST(Acceptance, InjectsTheUrlOfTheEndpointUnlessThePodNamesTheHostOfItsRedis) {
  const auto injects_url = [](SnapshotBuilder& builder) {
    builder.warmup().spec.caches = {{.name = "torchinductor-redis"}};
    builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
    const Plan plan = builder.Decide();
    EXPECT_TRUE(plan.status.injection.has_value());
    const auto& env = plan.status.injection->env;
    EXPECT_GE(env.size(), 3U);
    return std::any_of(env.begin(), env.end(),
                       [](const auto& each) { return each.name == "TORCHINDUCTOR_REDIS_URL"; });
  };
  SnapshotBuilder without = OneNode();
  EXPECT_TRUE(injects_url(without));
  SnapshotBuilder with = OneNode();
  with.pod_template()["spec"]["containers"][0]["env"] = {
      {{"name", "TORCHINDUCTOR_REDIS_HOST"}, {"value", "redis.team"}}};
  EXPECT_FALSE(injects_url(with));
}

TEST(Acceptance, RepeatsDryRunAfterTenMinutesWhileInjecting) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted().Now(100 + 599);
  EXPECT_FALSE(builder.Decide().dry_run.has_value());
  builder.Now(100 + 601);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.dry_run.has_value());
  EXPECT_TRUE(plan.status.injection.has_value());
}

TEST(Acceptance, ChangedTemplateRequestsNewDryRun) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  const std::string before = builder.in().dry_run.fingerprint;
  builder.pod_template()["spec"]["containers"][0]["args"] = {"--more"};
  const Plan plan = builder.Decide();
  ASSERT_TRUE(plan.dry_run.has_value());
  EXPECT_NE(plan.dry_run->fingerprint, before);
  EXPECT_TRUE(plan.status.injection.has_value()) << "continues until an answer objects";
}

struct AnswerCase {
  const char* name;
  DryRunResult unmodified;
  DryRunResult injected;
  const char* reason;
};

class DryRunAnswers : public testing::TestWithParam<AnswerCase> {};

TEST_P(DryRunAnswers, OnlyRejectionOfTheInjectedPodAloneStopsInjection) {
  SnapshotBuilder builder = OneNode();
  builder.DryRunAnswered(GetParam().unmodified, GetParam().injected, "denied by x");
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, DryRunAnswers,
    testing::Values(
        AnswerCase{"both", DryRunResult::kAllowed, DryRunResult::kAllowed, "Injecting"},
        AnswerCase{"refused", DryRunResult::kAllowed, DryRunResult::kRefused, "InjectionRejected"},
        AnswerCase{"both_refused", DryRunResult::kRefused, DryRunResult::kRefused, "Injecting"},
        AnswerCase{"unknown", DryRunResult::kUnknown, DryRunResult::kUnknown, "Injecting"},
        AnswerCase{"half", DryRunResult::kUnknown, DryRunResult::kRefused, "Injecting"},
        AnswerCase{"odd", DryRunResult::kRefused, DryRunResult::kAllowed, "Injecting"}),
    [](const auto& each) { return each.param.name; });

TEST(Acceptance, FailedCreateNamingTheVolumeStopsInjection) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.in().create_failure = {.time = At(99), .message = "volume \"cachewarm\" is not allowed"};
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "InjectionRejected");
  EXPECT_FALSE(plan.status.injection.has_value());
  EXPECT_EQ(plan.set_inject_label, false);
  EXPECT_NE(Condition(plan, "Ready")->message.find("not allowed"), std::string::npos);
}

TEST(Acceptance, RejectionLastsUntilNewerDryRunIsAllowed) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.in().create_failure = {.time = At(99), .message = "hostPath is forbidden"};
  const Plan refused = builder.Decide();
  builder.status() = refused.status;
  builder.in().create_failure = {};
  builder.Now(110);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "InjectionRejected");
  builder.Now(800).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

// Beyond its quota a namespace rejects the pod with and without the volume, which proves nothing.
TEST(Acceptance, InconclusiveDryRunRetriesInjectionAfterAnHour) {
  for (const auto& [unmodified, injected] :
       {std::pair(DryRunResult::kUnknown, DryRunResult::kUnknown),
        std::pair(DryRunResult::kAllowed, DryRunResult::kUnknown)}) {
    SnapshotBuilder builder = OneNode();
    builder.Accepted();
    builder.in().create_failure = {.time = At(99), .message = "hostPath is forbidden"};
    builder.status() = builder.Decide().status;
    builder.in().create_failure = {};
    builder.Now(800).DryRunAnswered(unmodified, injected);
    EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "InjectionRejected");
    builder.Now(100 + 3601).DryRunAnswered(unmodified, injected);
    EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
  }
}

TEST(Acceptance, ChangedSpecEndsRejectionAtOnce) {
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
