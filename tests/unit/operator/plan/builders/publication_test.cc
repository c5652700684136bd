// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/base/digest.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/proof_fixture.h"

// A captured bundle is published, proven first, or suspended.
namespace cachewarm::plan {
namespace {

using api::BuilderState;
using fakes::At;
using fakes::HasEvent;

class Publication : public Proof {
 protected:
  // The proof succeeds at 146, which publishes the bundle.
  void PublishProven() {
    Start();
    fakes::PodSetup pod = ProofPod();
    pod.ready = 145;
    cluster_.Pod(pod);
    Step(146);
  }
};

TEST_F(Publication, ReadyPodPublishesBundleToAllNodes) {
  Start();
  EXPECT_EQ(Builder().proof->pod_uid, "uid-p");
  EXPECT_TRUE(BundlesOf("n2").empty());
  fakes::PodSetup pod = ProofPod();
  pod.ready = 145;
  cluster_.Pod(pod);
  const Plan plan = Step(146);
  EXPECT_EQ(Builder().state, BuilderState::kCaptured);
  EXPECT_FALSE(Builder().captured || Builder().proof);
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  EXPECT_EQ(plan.status.bundles[0].digest, digest_);
  EXPECT_EQ(plan.status.bundles[0].published_time, At(146));
  EXPECT_EQ(BundlesOf("n2"), std::vector<std::string>{digest_.ToString()});
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{proof_job_});
  EXPECT_TRUE(HasEvent(plan, "Published"));
  EXPECT_TRUE(plan.status.suspended_bundles.empty());
  EXPECT_EQ(plan.builds_finished.size(), 1U);
  EXPECT_TRUE(Step(147).jobs_to_create.empty());
}

TEST_F(Publication, SameBundleIsNotProvenAgain) {
  Refuse();
  const Plan plan = Build(200, "c");
  EXPECT_EQ(Builder().reason, "BundleSuspended");
  EXPECT_TRUE(plan.status.bundles.empty());
  EXPECT_TRUE(BundlesOf("n1").empty());
}

TEST_F(Publication, SwitchedOffProofForgetsRefusedBundles) {
  Refuse();
  cluster_.warmup().spec.compile.proof = api::Proof::kNone;
  cluster_.Now(141);
  EXPECT_TRUE(cluster_.Decide().status.suspended_bundles.empty());
  Build(142, "c");
  EXPECT_EQ(cluster_.status().bundles.size(), 1U);
}

TEST_F(Publication, HungBundlesStaySuspendedWithoutProof) {
  cluster_.warmup().spec.compile.proof = api::Proof::kNone;
  cluster_.status().suspended_bundles = {{.key = cluster_.Key("n1"),
                                          .digest = fakes::DigestNamed("e"),
                                          .hung_starts = {{.pod_uid = "1"}, {.pod_uid = "2"}}}};
  EXPECT_EQ(Step(100).status.suspended_bundles.size(), 1U);
}

TEST_F(Publication, JobRebuildsBundleThatPodsMissed) {
  cluster_.Bundle({.node = "n1", .digest = "a", .published = 50, .active = {"n1", "n2"}});
  cluster_.Pod({.name = "w", .node = "n2", .created = 55, .started = 60, .ready = 70});
  cluster_.cache("n2").status.starts = {{.pod_uid = "uid-w", .result = api::StartResult::kMiss}};
  Step(90);
  const Plan first = Step(100);
  ASSERT_EQ(first.jobs_to_create.size(), 1U) << "a Job rebuilds, not the pod that missed";
  EXPECT_TRUE(Builder().pod_uid.empty());
}

TEST_F(Publication, RebuiltBundleReplacesPublishedOneOnBuildersNodeOnly) {
  PublishProven();
  const std::string old = digest_.ToString();
  api::BuilderStatus& builder = cluster_.status().builders[0];
  builder.state = BuilderState::kProving;
  builder.captured = api::CapturedBundle{.digest = fakes::DigestNamed("d"), .bytes = 1};
  builder.proof = api::ProofStatus{.started_time = At(200)};
  Step(201);
  EXPECT_EQ(BundlesOf("n1"), std::vector<std::string>{fakes::DigestNamed("d").ToString()});
  EXPECT_EQ(BundlesOf("n2"), std::vector<std::string>{old});
  EXPECT_EQ(cluster_.status().bundles.at(0).digest.ToString(), old);
}

TEST_F(Publication, SwitchedOffProofPublishesAtOnce) {
  Start();
  cluster_.warmup().spec.compile.proof = api::Proof::kNone;
  const Plan plan = Step(140);
  EXPECT_EQ(plan.status.bundles.size(), 1U);
  EXPECT_EQ(Builder().state, BuilderState::kCaptured);
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{proof_job_});
}

// A build that ends with the published bundle has nothing to prove.
TEST_F(Publication, PublishedBundleIsNotProvenAgain) {
  PublishProven();
  api::BuilderStatus& builder = cluster_.status().builders[0];
  builder.state = BuilderState::kCapturing;
  builder.captured = api::CapturedBundle{.digest = digest_, .bytes = 1234};
  const Plan plan = Step(201);
  EXPECT_EQ(Builder().state, BuilderState::kCaptured);
  EXPECT_EQ(plan.status.bundles.at(0).published_time, At(201));
  EXPECT_EQ(BundlesOf("n2"), std::vector<std::string>{digest_.ToString()});
}

TEST_F(Publication, OldestSuspendedBundleIsDropped) {
  for (size_t i = 0; i < api::kSuspendedBundlesMax; ++i) {
    cluster_.status().suspended_bundles.push_back(
        {.key = std::string(64, 'f'), .digest = DigestOf(std::to_string(i))});
  }
  const Digest second = cluster_.status().suspended_bundles[1].digest;
  Refuse();
  const auto& suspended = cluster_.status().suspended_bundles;
  ASSERT_EQ(suspended.size(), api::kSuspendedBundlesMax);
  EXPECT_EQ(suspended.front().digest, second);
  EXPECT_EQ(suspended.back().digest, digest_);
}

}  // namespace
}  // namespace cachewarm::plan
