// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/reasons.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using fakes::At;
using fakes::SnapshotBuilder;

// A builder Job's pod with ready containers, of a warmup with two requests.
class BuilderRequests : public testing::Test {
 protected:
  BuilderRequests() {
    builder_.Node({.name = "n1"});
    builder_.in().workload.replicas = 0;
    builder_.warmup().spec.compile.requests = {{.path = "/a", .port = 80},
                                               {.method = "POST", .path = "/b", .port = 80}};
    builder_.Accepted();
    const Plan plan = builder_.Decide();
    builder_.status() = plan.status;
    job_ = plan.jobs_to_create.at(0).name;
    builder_.in().jobs.push_back({.name = job_, .uid = "j", .created = builder_.in().now});
  }

  void Pod(int ready) {
    builder_.Pod({.name = "b",
                  .node = "n1",
                  .created = 101,
                  .started = 103,
                  .ready = ready > 0 ? std::optional(ready) : std::nullopt,
                  .job = job_});
    auto pod = std::make_shared<api::Pod>(*builder_.in().pods.back());
    pod->ip = "10.0.0.7";
    builder_.in().pods.back() = pod;
    builder_.Now(121);
  }
  static bool AsksForCapture(const Plan& plan) {
    const NodeEntries* wants = fakes::EntriesOf(plan, "n1");
    return wants != nullptr && !wants->spec.captures.empty();
  }

  SnapshotBuilder builder_;
  std::string job_;
};

TEST_F(BuilderRequests, NotSentBeforeContainersAreReady) {
  Pod(0);
  const Plan plan = builder_.Decide();
  EXPECT_TRUE(plan.build_requests.empty());
  EXPECT_FALSE(AsksForCapture(plan));
  EXPECT_EQ(plan.status.builders.at(0).pod_name, "b");
}

TEST_F(BuilderRequests, SentToBuilderAddressBeforeCapture) {
  Pod(120);
  const Plan plan = builder_.Decide();
  ASSERT_EQ(plan.build_requests.size(), 1U);
  EXPECT_EQ(plan.build_requests[0].pod_uid, "uid-b");
  EXPECT_EQ(plan.build_requests[0].pod_ip, "10.0.0.7");
  EXPECT_EQ(plan.build_requests[0].requests, builder_.warmup().spec.compile.requests);
  EXPECT_FALSE(AsksForCapture(plan));
  builder_.status() = plan.status;
  EXPECT_EQ(builder_.Decide().build_requests.size(), 1U) << "until their exit is seen";
}

TEST_F(BuilderRequests, CaptureFollowsLastAnswer) {
  Pod(120);
  builder_.status() = builder_.Decide().status;
  builder_.in().build_requests = {{.pod_uid = "another", .ended = true, .failure = "x"},
                                  {.pod_uid = "uid-b", .ended = true}};
  const Plan plan = builder_.Decide();
  EXPECT_EQ(plan.status.builders.at(0).answered_time, At(121));
  EXPECT_TRUE(plan.build_requests.empty());
  EXPECT_TRUE(AsksForCapture(plan));
  // A new leader knows only the status.
  builder_.status() = plan.status;
  builder_.in().build_requests.clear();
  const Plan later = builder_.Decide();
  EXPECT_TRUE(later.build_requests.empty());
}

TEST_F(BuilderRequests, FailedProbeDuringRequestsIsIgnored) {
  Pod(120);
  builder_.status() = builder_.Decide().status;
  auto pod = std::make_shared<api::Pod>(*builder_.in().pods.back());
  pod->containers_ready = false;
  builder_.in().pods.back() = pod;
  EXPECT_TRUE(builder_.Decide().build_requests.empty()) << "nothing starts now";
  builder_.in().build_requests = {{.pod_uid = "uid-b"}};
  EXPECT_EQ(builder_.Decide().build_requests.size(), 1U) << "and nothing is stopped";
}

TEST_F(BuilderRequests, FailedRequestFailsBuildWithItsMessage) {
  Pod(120);
  builder_.status() = builder_.Decide().status;
  builder_.in().build_requests = {
      {.pod_uid = "uid-b", .ended = true, .failure = "request 2 of 2: answered 500"}};
  const Plan plan = builder_.Decide();
  const api::BuilderStatus& builder = plan.status.builders.at(0);
  EXPECT_EQ(builder.state, BuilderState::kFailed);
  EXPECT_EQ(builder.reason, api::reason::kBuildRequestFailed);
  EXPECT_EQ(builder.message, "request 2 of 2: answered 500");
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{job_});
  EXPECT_FALSE(AsksForCapture(plan));
}

TEST_F(BuilderRequests, HangingRequestsTimeOutTheBuild) {
  builder_.warmup().spec.compile.timeout_seconds = 60;
  Pod(120);
  builder_.status() = builder_.Decide().status;
  builder_.Now(180);
  const Plan plan = builder_.Decide();
  EXPECT_EQ(plan.status.builders.at(0).state, BuilderState::kFailed);
  EXPECT_TRUE(plan.build_requests.empty());
}

TEST_F(BuilderRequests, FirstPodsReceiveNoRequests) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.warmup().spec.compile.requests = {{.path = "/a", .port = 80}};
  builder.Accepted();
  builder.Pod({.name = "p", .node = "n1", .created = 101, .started = 103, .ready = 104});
  builder.Now(105);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.build_requests.empty());
  EXPECT_TRUE(AsksForCapture(plan));
}

}  // namespace
}  // namespace cachewarm::plan
