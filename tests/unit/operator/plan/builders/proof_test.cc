// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/proof_fixture.h"

// The bundle of a builder Job is given to other nodes only after a second Job has started with it.
namespace cachewarm::plan {
namespace {

using api::BuilderState;
using codec::Json;
using fakes::At;
using fakes::HasEvent;
using fakes::SnapshotBuilder;
using testing::HasSubstr;

TEST_F(Proof, CapturedBundleIsGivenToBuildersNodeOnly) {
  const Plan plan = Build(100, "c");
  EXPECT_EQ(Builder().state, BuilderState::kProving);
  EXPECT_TRUE(plan.status.bundles.empty());
  EXPECT_EQ(BundlesOf("n1"), std::vector<std::string>{digest_.ToString()});
  EXPECT_TRUE(BundlesOf("n2").empty());
  EXPECT_FALSE(HasEvent(plan, "Published"));
  EXPECT_EQ(fakes::ReasonOf(plan, "Warm"), "Building");
}

TEST_F(Proof, JobWaitsForEndOfBuildJobAndForActiveBundle) {
  Build(100, "c");
  const Plan deletes = Step(131);
  EXPECT_EQ(deletes.jobs_to_delete, std::vector<std::string>{build_job_});
  EXPECT_TRUE(Step(132).jobs_to_create.empty()) << "the bundle is not active yet";
  Activate();
  cluster_.in().jobs = {{.name = build_job_, .deleting = true}};
  EXPECT_TRUE(Step(133).jobs_to_create.empty()) << "the Job of the build still has the device";
  cluster_.in().jobs.clear();
  const Plan plan = Step(134);
  ASSERT_EQ(plan.jobs_to_create.size(), 1U);
  EXPECT_EQ(plan.jobs_to_create[0].name, build_job_ + "-proof");
  EXPECT_EQ(Builder().proof->job, build_job_ + "-proof");
  EXPECT_EQ(Builder().proof->requested_time, At(134));
}

TEST_F(Proof, JobHasStrictVariablesAndRunsOnBuildersNode) {
  Build(100, "c");
  Step(131);
  Activate();
  const Plan plan = Step(135);
  ASSERT_EQ(plan.jobs_to_create.size(), 1U);
  const Json& job = *plan.jobs_to_create[0].object;
  EXPECT_EQ(job["metadata"]["labels"][std::string(api::kBuilderProofLabel)], "true");
  const std::string text = codec::DumpJson(job["spec"]["template"]["spec"]);
  EXPECT_THAT(text, HasSubstr(R"({"name":"VLLM_FORCE_AOT_LOAD","value":"1"})"));
  EXPECT_THAT(text, HasSubstr(R"({"name":"SGLANG_CRASH_ON_JIT_COMPILE","value":"1"})"));
  EXPECT_THAT(text, HasSubstr(R"("values":["n1"])"));
}

TEST_F(Proof, ReadyPodsOfOtherJobsProveNothing) {
  Request();
  fakes::PodSetup pod = ProofPod();
  pod.ready = 145;
  pod.job = "llama-other-1-proof";
  cluster_.Pod(pod);
  cluster_.Now(146);
  EXPECT_TRUE(cluster_.Decide().status.bundles.empty());
}

TEST_F(Proof, ReportsStartOfJobAsEvent) {
  Request();
  cluster_.Pod(ProofPod());
  EXPECT_TRUE(HasEvent(Step(138), "ProofStarted"));
  EXPECT_FALSE(HasEvent(Step(139), "ProofStarted")) << "once";
}

TEST_F(Proof, GpuSecondsAreThoseOfBothJobs) {
  UseGpus(2);
  Start();
  EXPECT_DOUBLE_EQ(Builder().gpu_seconds, 2 * (130 - 103));
  fakes::PodSetup pod = ProofPod();
  pod.ready = 139;
  cluster_.Pod(pod);
  const Plan plan = Step(140);
  ASSERT_EQ(plan.builds_finished.size(), 1U);
  EXPECT_DOUBLE_EQ(plan.builds_finished[0].gpu_seconds, 2 * (130 - 103) + 2 * (140 - 137));
  EXPECT_EQ(Builder().gpu_seconds, 0);
}

struct RefusedCase {
  const char* name;
  std::function<void(SnapshotBuilder&, fakes::PodSetup)> end;
  int second;
  const char* words;
};

class RefusedProof : public Proof, public testing::WithParamInterface<RefusedCase> {};

TEST_P(RefusedProof, BundleIsSuspendedAndTreeReplaced) {
  cluster_.warmup().spec.compile.timeout_seconds = 300;
  Start();
  GetParam().end(cluster_, ProofPod());
  EXPECT_TRUE(cluster_.status().bundles.empty());
  const Plan plan = Step(GetParam().second);
  EXPECT_EQ(Builder().state, BuilderState::kFailed);
  EXPECT_EQ(Builder().reason, "ProofFailed");
  EXPECT_THAT(Builder().message, HasSubstr(GetParam().words));
  EXPECT_FALSE(Builder().captured || Builder().proof);
  EXPECT_TRUE(plan.status.bundles.empty());
  ASSERT_EQ(plan.status.suspended_bundles.size(), 1U);
  EXPECT_EQ(plan.status.suspended_bundles[0].digest, digest_);
  EXPECT_THAT(plan.status.suspended_bundles[0].message, HasSubstr(GetParam().words));
  EXPECT_TRUE(HasEvent(plan, "ProofFailed"));
  EXPECT_THAT(fakes::Condition(plan, "Degraded")->message, HasSubstr(GetParam().words));
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{proof_job_});
  EXPECT_TRUE(BundlesOf("n1").empty());
  EXPECT_TRUE(BundlesOf("n2").empty());
  EXPECT_GT(cluster_.cache("n1").spec.warmups.at(0).renew, 0) << "its tree has the refused files";
  EXPECT_FALSE(plan.status.suspension.has_value()) << "injection continues";
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedProof,
    testing::Values(
        RefusedCase{"exits",
                    [](SnapshotBuilder& cluster, fakes::PodSetup pod) {
                      pod.exit_code = 1;
                      pod.words = "kernel 7 is missing";
                      cluster.Pod(pod);
                    },
                    140, "ended before it was ready: exit 1: kernel 7 is missing"},
        RefusedCase{"exits_without_error",
                    [](SnapshotBuilder& cluster, fakes::PodSetup pod) {
                      pod.exit_code = 0;
                      cluster.Pod(pod);
                    },
                    140, "ended before it was ready: exit 0"},
        RefusedCase{"is_never_ready", [](SnapshotBuilder&, const fakes::PodSetup&) {}, 437,
                    "was not ready 300 s after its container started (compile.timeoutSeconds)"},
        RefusedCase{"answers_a_request_wrongly",
                    [](SnapshotBuilder& cluster, fakes::PodSetup pod) {
                      cluster.warmup().spec.compile.requests = {{.path = "/", .port = 1}};
                      pod.ready = 139;
                      cluster.Pod(pod);
                      cluster.in().build_requests = {
                          {.pod_uid = "uid-p", .ended = true, .failure = "answered 500"}};
                    },
                    140, "answered 500"}),
    [](const auto& each) { return each.param.name; });

TEST_F(Proof, RequestsAreSentToItsPodToo) {
  cluster_.warmup().spec.compile.requests = {{.path = "/", .port = 1}};
  cluster_.in().build_requests = {{.pod_uid = "uid-b100", .ended = true}};
  Start();
  fakes::PodSetup pod = ProofPod();
  pod.ready = 139;
  cluster_.Pod(pod);
  auto with_ip = std::make_shared<api::Pod>(*cluster_.in().pods.back());
  with_ip->ip = "10.0.0.7";
  cluster_.in().pods.back() = with_ip;
  const Plan asks = Step(140);
  ASSERT_EQ(asks.build_requests.size(), 1U);
  EXPECT_EQ(asks.build_requests[0].pod_uid, "uid-p");
  EXPECT_TRUE(asks.status.bundles.empty());
  cluster_.in().build_requests = {{.pod_uid = "uid-p", .ended = true}};
  EXPECT_EQ(Step(150).status.bundles.size(), 1U);
}

// The bundle may be good, so the next build starts from scratch and nothing is suspended.
struct LostCase {
  const char* name;
  std::function<void(SnapshotBuilder&, fakes::PodSetup)> lose;
  int second;
  const char* reason;
  const char* words;
};

class LostProof : public Proof, public testing::WithParamInterface<LostCase> {};

TEST_P(LostProof, BuildFailsWithoutSuspension) {
  Start();
  GetParam().lose(cluster_, ProofPod());
  const Plan plan = Step(GetParam().second);
  EXPECT_EQ(plan.status.builders.at(0).state, BuilderState::kFailed);
  EXPECT_EQ(plan.status.builders[0].reason, GetParam().reason);
  EXPECT_THAT(plan.status.builders[0].message, HasSubstr(GetParam().words));
  EXPECT_TRUE(plan.status.bundles.empty());
  EXPECT_TRUE(plan.status.suspended_bundles.empty());
  EXPECT_EQ(plan.status.builders[0].bundles_suspended, 0);
  EXPECT_TRUE(BundlesOf("n2").empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, LostProof,
    testing::Values(LostCase{"pod_deleted",
                             [](SnapshotBuilder& cluster, fakes::PodSetup pod) {
                               pod.deleting = true;
                               pod.exit_code = 143;
                               cluster.Pod(pod);
                             },
                             140, "BuilderLost", "was deleted"},
                    LostCase{"pod_gone",
                             [](SnapshotBuilder& cluster, const fakes::PodSetup&) {
                               cluster.in().pods.clear();
                               cluster.in().jobs.clear();
                             },
                             140, "BuilderLost", "was deleted"},
                    LostCase{"node_gone",
                             [](SnapshotBuilder& cluster, const fakes::PodSetup&) {
                               cluster.in().nodes.erase(cluster.in().nodes.begin());
                             },
                             140, "BuilderLost", "node n1 is gone"},
                    LostCase{"node_changed",
                             [](SnapshotBuilder& cluster, const fakes::PodSetup&) {
                               cluster.cache("n1").status.node.gpu_type = fakes::kH100;
                             },
                             140, "BuilderLost", "node n1 does not have the GPU type"},
                    LostCase{"paused",
                             [](SnapshotBuilder& cluster, const fakes::PodSetup&) {
                               cluster.warmup().spec.paused = true;
                             },
                             140, "BuilderLost", "spec.paused"}),
    [](const auto& each) { return each.param.name; });

TEST_F(Proof, ChangedImageEndsProofThatHasNotStarted) {
  Request();
  cluster_.pod_template()["spec"]["containers"][0]["image"] = "server:2";
  const Plan plan = Step(136);
  const api::BuilderStatus* builder = nullptr;
  for (const api::BuilderStatus& each : plan.status.builders) {
    builder = each.image == "server:1" ? &each : builder;
  }
  ASSERT_NE(builder, nullptr);
  EXPECT_EQ(builder->reason, "BuilderLost");
  EXPECT_THAT(builder->message, HasSubstr("obsolete"));
  EXPECT_TRUE(plan.status.suspended_bundles.empty());
  EXPECT_TRUE(plan.status.bundles.empty());
}

// The bundle is a seed for the next image, and serves after a rollback.
TEST_F(Proof, ChangedImageLetsStartedProofEnd) {
  Start();
  cluster_.pod_template()["spec"]["containers"][0]["image"] = "server:2";
  EXPECT_TRUE(Step(140).status.bundles.empty());
  fakes::PodSetup pod = ProofPod();
  pod.ready = 145;
  cluster_.Pod(pod);
  const Plan plan = Step(146);
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  EXPECT_EQ(plan.status.bundles[0].image, "server:1");
}

TEST_F(Proof, UnscheduledJobFailsAfterPendingSeconds) {
  Request();
  EXPECT_EQ(Step(729).status.builders.at(0).state, BuilderState::kProving);
  const Plan plan = Step(730);
  EXPECT_EQ(Builder().reason, "BuilderPending");
  EXPECT_THAT(Builder().message, HasSubstr("its pod was not scheduled"));
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{proof_job_});
  EXPECT_TRUE(plan.status.suspended_bundles.empty());
}

TEST_F(Proof, BundleThatNodeCannotActivateFailsAfterPendingSeconds) {
  Build(100, "c");
  Step(131);
  cluster_.reported("n1").bundles = {
      {.digest = digest_, .state = api::BundleState::kFailed, .message = "bad signature"}};
  EXPECT_TRUE(Step(200).jobs_to_create.empty());
  Step(730);
  EXPECT_EQ(Builder().reason, "BuilderPending");
  EXPECT_THAT(Builder().message, HasSubstr("bad signature"));
}

TEST_F(Proof, RejectedJobFailsBuildWithServerMessage) {
  Request();
  cluster_.in().jobs[0].refused = true;
  cluster_.in().jobs[0].message = "quota exceeded";
  Step(136);
  EXPECT_EQ(Builder().reason, "BuilderJobRejected");
  EXPECT_THAT(Builder().message, HasSubstr("quota exceeded"));
}

// A new leader has only the status. The first create may have been lost.
TEST_F(Proof, RestartedOperatorRequestsSameJobAgain) {
  Request();
  const api::BuilderStatus before = Builder();
  cluster_.in().jobs.clear();
  const Plan again = Step(137);
  ASSERT_EQ(again.jobs_to_create.size(), 1U);
  EXPECT_EQ(again.jobs_to_create[0].name, proof_job_);
  EXPECT_EQ(Builder(), before);
  const Plan same = Step(138);
  EXPECT_TRUE(same.jobs_to_create.empty());
  EXPECT_FALSE(same.status_changed);
}

TEST_F(Proof, RestartedOperatorSeesOnlyTheReadyPod) {
  Request();
  fakes::PodSetup pod = ProofPod();
  pod.ready = 145;
  cluster_.Pod(pod);
  EXPECT_EQ(Step(300).status.bundles.size(), 1U);
}

TEST_F(Proof, RestartedOperatorSeesOnlyTheFailedPod) {
  Request();
  fakes::PodSetup pod = ProofPod();
  pod.exit_code = 1;
  cluster_.Pod(pod);
  cluster_.in().jobs[0].failed = true;
  Step(300);
  EXPECT_EQ(Builder().reason, "ProofFailed");
}

TEST_F(Proof, RefusedBundleIsBuiltOnceMoreAndThenNoMore) {
  Refuse();
  EXPECT_TRUE(Step(165).jobs_to_create.empty()) << "the tree is being replaced";
  Refuse(200, "d");
  EXPECT_EQ(Builder().bundles_suspended, 2);
  EXPECT_TRUE(Step(100'000).jobs_to_create.empty());
  EXPECT_THAT(fakes::Condition(cluster_.Decide(), "Degraded")->message,
              HasSubstr("no other bundle is built"));
}

TEST_F(Proof, StartOfProofIsNotCounted) {
  Start();
  const auto counted = cluster_.status().starts.counts;
  EXPECT_EQ(counted.builder, 1);
  fakes::PodSetup pod = ProofPod();
  pod.ready = 145;
  cluster_.Pod(pod);
  cluster_.Now(146);
  cluster_.status() = cluster_.Decide().status;
  cluster_.Now(400);
  EXPECT_EQ(cluster_.Decide().status.starts.counts, counted);
}

// A held pod counts as a pod that needs the capacity, so it could wait for a Job that waits for it.
TEST_F(Proof, HeldPodsDoNotWaitForUnscheduledJob) {
  Request();
  cluster_.in().workload.replicas = 1;
  cluster_.Pod({.name = "h", .held = true, .created = 136});
  cluster_.Now(139);
  EXPECT_EQ(fakes::ReleaseOf(cluster_.Decide(), "h"), nullptr);
  cluster_.Now(140);
  EXPECT_NE(fakes::ReleaseOf(cluster_.Decide(), "h"), nullptr);
}

TEST_F(Proof, CacheWithoutStrictEngineIsRefused) {
  cluster_.warmup().spec.caches = {{.name = "triton"}};
  const Plan plan = cluster_.Decide();
  EXPECT_EQ(fakes::ReasonOf(plan, "Ready"), "InvalidSpec");
  const std::string message = fakes::Condition(plan, "Ready")->message;
  EXPECT_THAT(message, HasSubstr("spec.compile.proof"));
  EXPECT_THAT(message, HasSubstr("add one of vllm, sglang to spec.caches"));
  cluster_.warmup().spec.caches.push_back({.name = "sglang"});
  EXPECT_NE(fakes::ReasonOf(cluster_.Decide(), "Ready"), "InvalidSpec");
}

}  // namespace
}  // namespace cachewarm::plan
