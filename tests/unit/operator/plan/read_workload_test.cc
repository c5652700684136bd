// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lib/codec/json_value.h"
#include "lib/fingerprint/key.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/jobs_fixture.h"

// Pods whose image or devices a mutating policy or webhook changes: keys, builders and bundles are
// those of the pods that run, not of the template's text.
namespace cachewarm::plan {
namespace {

using api::BuilderState;
using fakes::OneNode;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

constexpr const char* kMirror = "mirror.example/server:1";

// Sets the container that the API server returns for the dry run of the present template.
void Rewrite(SnapshotBuilder& builder, const std::string& image, int devices = 0) {
  AdmissionDryRun answered = std::exchange(builder.in().dry_run, {});
  const auto request = builder.Decide().dry_run;
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->container, "server");
  answered.fingerprint = request->fingerprint;
  answered.time = builder.in().now;
  answered.admitted =
      api::AdmittedContainer{.revision = request->revision, .image = image, .devices = devices};
  builder.in().dry_run = answered;
}

void ChangeTemplate(SnapshotBuilder& builder) {
  builder.pod_template()["spec"]["containers"][0]["image"] = "server:2";
}

SnapshotBuilder Mirrored() {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  Rewrite(builder, kMirror);
  return builder;
}

struct RewriteCase {
  const char* name;
  const char* image;
  int devices;
};

class RewrittenPods : public testing::TestWithParam<RewriteCase> {
 protected:
  RewrittenPods() {
    builder_.Node({.name = "n1", .gpus = 1});
    builder_.Accepted();
    Rewrite(builder_, GetParam().image, GetParam().devices);
  }

  std::string Key() {
    const api::NodeStatus& facts = builder_.cache("n1").status.node;
    return fingerprint::KeyOf({.gpu_type = facts.gpu_type,
                               .cpu_class = facts.cpu_class,
                               .image = GetParam().image,
                               .devices = GetParam().devices,
                               .container = "server"})
        .value();
  }

  SnapshotBuilder builder_;
};

TEST_P(RewrittenPods, FirstPodIsElectedForTheKeyThatItRuns) {
  builder_.Pod({.name = "a",
                .node = "n1",
                .image = GetParam().image,
                .gpus = GetParam().devices,
                .created = 80,
                .started = 90});
  const Plan plan = builder_.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, Key());
  EXPECT_EQ(plan.status.builders[0].image, GetParam().image);
  const NodeEntries* entries = fakes::EntriesOf(plan, "n1");
  ASSERT_NE(entries, nullptr);
  ASSERT_EQ(entries->spec.captures.size(), 1U);
  EXPECT_EQ(entries->spec.captures[0].factors.image, GetParam().image);
  EXPECT_EQ(entries->spec.captures[0].factors.devices, GetParam().devices);
}

TEST_P(RewrittenPods, HeldPodIsElected) {
  builder_.Pod({.name = "a",
                .held = true,
                .image = GetParam().image,
                .gpus = GetParam().devices,
                .created = 97});
  const Plan plan = builder_.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, Key());
  ASSERT_NE(fakes::ReleaseOf(plan, "a"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "a")->reason, "ReleasedForBuild");
}

INSTANTIATE_TEST_SUITE_P(
    All, RewrittenPods,
    testing::Values(RewriteCase{"mirror", kMirror, 0},
                    RewriteCase{"digest",
                                "server:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef"
                                "0123456789abcdef",
                                0},
                    RewriteCase{"device", "server:1", 1}),
    [](const auto& each) { return each.param.name; });

TEST(RewrittenImage, BundleOfTheRunningImageMakesTheWarmupWarmAndReleasesPods) {
  SnapshotBuilder builder = Mirrored();
  builder.Bundle({.node = "n1", .image = kMirror, .published = 10, .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .image = kMirror, .created = 97});
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Warm"), "Distributed");
  ASSERT_NE(fakes::ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "p")->reason, "ReleasedWarm");
  EXPECT_TRUE(plan.status.builders.empty()) << "the bundle serves the template's pods";
}

TEST(RewrittenImage, JobIsCreatedFromTheTemplateAndItsRewrittenPodIsTheBuilder) {
  SnapshotBuilder builder = ScaledDown();
  Rewrite(builder, kMirror);
  const Plan first = builder.Decide();
  ASSERT_EQ(first.jobs_to_create.size(), 1U);
  const codec::Json& job = *first.jobs_to_create[0].object;
  EXPECT_EQ(job["spec"]["template"]["spec"]["containers"][0]["image"], "server:1")
      << "admission rewrites it once more";
  const std::string name = Apply(builder, first);
  builder.Pod(
      {.name = "b", .node = "n1", .image = kMirror, .created = 101, .started = 103, .job = name});
  builder.Now(104);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, builder.Key("n1", kMirror));
  EXPECT_EQ(plan.status.builders[0].pod_uid, "uid-b");
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
  EXPECT_TRUE(plan.jobs_to_create.empty());
  EXPECT_TRUE(plan.jobs_to_delete.empty());
}

TEST(RewrittenImage, RestartedOperatorKeepsTheKeys) {
  SnapshotBuilder builder = ScaledDown();
  Rewrite(builder, kMirror);
  Apply(builder, builder.Decide());
  ASSERT_TRUE(builder.status().admitted.has_value());
  EXPECT_EQ(builder.status().admitted->image, kMirror);
  builder.in().dry_run = {};
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, builder.Key("n1", kMirror));
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
  EXPECT_EQ(plan.status.admitted, builder.status().admitted);
}

TEST(RewrittenImage, DryRunWithoutAnAnswerKeepsTheKeys) {
  SnapshotBuilder builder = Mirrored();
  builder.status() = builder.Decide().status;
  builder.in().dry_run.admitted.reset();
  builder.in().dry_run.unmodified = DryRunResult::kUnknown;
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.admitted, builder.status().admitted);
}

TEST(RewrittenImage, JobForANewTemplateWaitsForTheDryRun) {
  SnapshotBuilder builder = ScaledDown();
  Rewrite(builder, kMirror);
  builder.Bundle({.node = "n1", .image = kMirror, .published = 10, .active = {"n1"}});
  builder.status().admitted = builder.Decide().status.admitted;
  ChangeTemplate(builder);
  const Plan waiting = builder.Decide();
  EXPECT_TRUE(waiting.jobs_to_create.empty());
  EXPECT_TRUE(waiting.dry_run.has_value());
  EXPECT_EQ(waiting.status.admitted, builder.status().admitted);
  EXPECT_NE(fakes::Condition(waiting, "Warm")->message.find("dry run"), std::string::npos);
  Rewrite(builder, "mirror.example/server:2");
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.jobs_to_create.size(), 1U);
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, builder.Key("n1", "mirror.example/server:2"));
}

TEST(RewrittenImage, StatusForgetsARewriteThatEnded) {
  SnapshotBuilder builder = Mirrored();
  builder.status() = builder.Decide().status;
  ASSERT_TRUE(builder.status().admitted.has_value());
  Rewrite(builder, "server:1");
  EXPECT_FALSE(builder.Decide().status.admitted.has_value());
}

TEST(RewrittenImage, UnchangedPodsAreNotRecorded) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  Rewrite(builder, "server:1");
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_FALSE(plan.status.admitted.has_value());
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].key, builder.Key("n1"));
}

}  // namespace
}  // namespace cachewarm::plan
