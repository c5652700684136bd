// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/start_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::StartResult;
using codec::Json;
using fakes::SnapshotBuilder;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kSalt = "0123456789abcdef0123456789abcdef";

Json Container(const std::string& value) {
  return {{"name", "server"}, {"env", {{{"name", "VLLM_A"}, {"value", value}}}}};
}

factors::StartFactors BuilderFactors(const Json& container) {
  return factors::FactorsOf({.container = &container,
                             .image = "server:1",
                             .container_name = "server",
                             .gpu_type = "cpu",
                             .cpu_class = fakes::kAvx512},
                            "n1", kSalt);
}

// A node with a bundle whose builder has VLLM_A=1, and the pod "p" that started with it.
class StartCause : public testing::Test {
 protected:
  StartCause() {
    builder.Node({.name = "n1"});
    builder.Accepted();
    builder.Bundle({.node = "n1", .published = 10, .active = {"n1"}});
    builder.status().bundles[0].builder_pod = "b";
    builder.status().bundles[0].factors = factors::Encode(BuilderFactors(Container("1")));
    builder.in().factor_salt = kSalt;
  }

  void Start(const std::string& value, StartResult result, const std::string& image = "server:1") {
    builder.Pod(
        {.name = "p", .node = "n1", .image = image, .created = 80, .started = 90, .ready = 95});
    for (auto& pod : builder.in().pods) {
      Json object = *pod->object;
      object[std::string(factors::kStartedContainers)] = Json::array({Container(value)});
      api::Pod changed = *pod;
      changed.object = std::make_shared<const Json>(std::move(object));
      pod = std::make_shared<const api::Pod>(std::move(changed));
    }
    builder.cache("n1").status.starts = {{.pod_uid = "uid-p", .result = result}};
  }

  SnapshotBuilder builder;
};

TEST_F(StartCause, MissNamesTheVariableThatDiffers) {
  Start("2", StartResult::kMiss);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_THAT(plan.starts_counted[0].cause,
              StartsWith("environment variable VLLM_A differs from that of builder pod b"));
  EXPECT_EQ(plan.status.starts.recent.back().cause, plan.starts_counted[0].cause);
  const PodAnnotation* note = fakes::AnnotationOf(plan, "p", "cachewarm.io/start");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(Json::parse(note->value)["cause"], plan.starts_counted[0].cause);
  const auto event = std::find_if(plan.events.begin(), plan.events.end(),
                                  [](const auto& each) { return each.reason == "CacheMissed"; });
  ASSERT_NE(event, plan.events.end());
  EXPECT_EQ(event->regarding.kind, "Pod");
  EXPECT_EQ(event->regarding.uid, "uid-p");
  EXPECT_THAT(event->note, HasSubstr(". Cause: environment variable VLLM_A differs"));
}

TEST_F(StartCause, EventOfEveryStartThatCompiledHasTheCause) {
  for (const StartResult result :
       {StartResult::kMiss, StartResult::kPartial, StartResult::kInert, StartResult::kHollow}) {
    Start("2", result);
    const Plan plan = builder.Decide();
    const auto event = std::find_if(plan.events.begin(), plan.events.end(),
                                    [](const auto& each) { return each.regarding.kind == "Pod"; });
    ASSERT_NE(event, plan.events.end()) << api::Name(result);
    EXPECT_THAT(event->note, HasSubstr(". Cause: " + plan.starts_counted.at(0).cause));
  }
}

TEST_F(StartCause, HitHasNoCauseAndNoEvent) {
  Start("2", StartResult::kHit);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.starts_counted.at(0).cause, "");
  EXPECT_FALSE(fakes::HasEvent(plan, "CacheMissed"));
  EXPECT_EQ(fakes::AnnotationOf(plan, "p", "cachewarm.io/start")->value.find("cause"),
            std::string::npos);
}

TEST_F(StartCause, NothingIsSaidWithoutASalt) {
  builder.in().factor_salt.clear();
  Start("2", StartResult::kMiss);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.starts_counted.at(0).cause, "");
  const auto event = std::find_if(plan.events.begin(), plan.events.end(),
                                  [](const auto& each) { return each.reason == "CacheMissed"; });
  ASSERT_NE(event, plan.events.end());
  EXPECT_THAT(event->note, Not(HasSubstr("Cause:")));
}

TEST_F(StartCause, StartWithAnotherImageIsColdBecauseOfTheImage) {
  Start("1", StartResult::kMiss, "server:2");
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].result, StartResult::kCold);
  EXPECT_THAT(plan.starts_counted[0].cause,
              StartsWith("image is server:2, but that of builder pod b is server:1"));
  EXPECT_FALSE(fakes::HasEvent(plan, "CacheMissed")) << "it had no bundle";
}

TEST_F(StartCause, StartBeforeTheBundleWasActiveBlamesNoFactor) {
  builder.reported("n1").bundles.clear();
  Start("2", StartResult::kMiss);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.starts_counted.at(0).result, StartResult::kCold);
  EXPECT_THAT(plan.starts_counted[0].cause, HasSubstr("was not active on node n1"));
}

TEST_F(StartCause, LaterBundleIsNotComparedWith) {
  builder.status().bundles[0].published_time = fakes::At(92);
  Start("2", StartResult::kMiss);
  EXPECT_THAT(builder.Decide().starts_counted.at(0).cause,
              StartsWith("no bundle was published when the pod started"));
}

}  // namespace
}  // namespace cachewarm::plan
