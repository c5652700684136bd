// SPDX-License-Identifier: Apache-2.0
#include "operator/crd_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "tests/fakes/await.h"
#include "tests/fakes/crds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::op {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class CrdCheckTest : public ::testing::Test {
 protected:
  ~CrdCheckTest() override {
    stop_.request_stop();
    if (running_.valid()) {
      running_.wait();
    }
  }

  void Start() {
    running_ = std::async(std::launch::async, [this] { check_.Run(stop_.get_token()); });
  }

  // Every read of a CRD fails with `status`, until it is OK.
  void Refuse(const absl::Status& status) {
    server_.Intercept([this, status](const kube::Request&) {
      ++reads_;
      return status;
    });
  }

  // Lets `count` further comparisons happen, one for each wait.
  void Recheck(int count, Duration step) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(clock_.AwaitWaiters(1));
      clock_.Advance(step);
    }
  }

  // Advances the clock by `total` in steps of a second, each once the check waits. The check must
  // not pass meanwhile.
  void Advance(seconds total) {
    for (seconds passed{0}; passed < total; passed += seconds(1)) {
      ASSERT_TRUE(clock_.AwaitWaiters(1));
      clock_.Advance(seconds(1));
    }
    ASSERT_TRUE(clock_.AwaitWaiters(1)) << log_.Text();
  }

  bool Passes() {
    return fakes::Await([this] { return check_.Problem().empty(); });
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_{clock_};
  fakes::MemoryLog log_;
  CrdCheck check_{{.client = server_, .clock = clock_, .log = log_}};
  std::atomic<int> reads_ = 0;
  std::stop_source stop_;
  std::future<void> running_;
};

TEST_F(CrdCheckTest, IsOpenBeforeTheFirstComparison) {
  EXPECT_EQ(check_.Problem(), "CustomResourceDefinitions not compared yet");
}

TEST_F(CrdCheckTest, PassesAtOnceWithTheCrdsOfThisRelease) {
  fakes::PutCrds(server_);
  Start();
  EXPECT_TRUE(check_.AwaitPassed(stop_.get_token()));
  EXPECT_EQ(check_.Problem(), "");
  running_.wait();
  EXPECT_THAT(server_.Requests(),
              ::testing::ElementsAre("get customresourcedefinitions cachewarmups.cachewarm.io",
                                     "get customresourcedefinitions nodecaches.cachewarm.io"));
  EXPECT_EQ(log_.Text(), "");
}

TEST_F(CrdCheckTest, OlderCrdIsReportedOnceAndPassesAfterItsUpdate) {
  fakes::PutCrds(server_);
  fakes::MakeWarmupCrdOlder(server_);
  Start();
  Recheck(5, seconds(10));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(check_.Problem(),
            "CustomResourceDefinition cachewarmups.cachewarm.io is older than this operator: "
            "version v1alpha1 has no field status.starts; run kubectl apply --server-side -f crds/ "
            "with the files of this release");
  EXPECT_EQ(log_.Count("has no field status.starts"), 1);
  fakes::PutCrds(server_);
  clock_.Advance(seconds(10));
  EXPECT_TRUE(Passes());
  EXPECT_TRUE(check_.AwaitPassed(stop_.get_token()));
}

TEST_F(CrdCheckTest, MissingCrdIsReported) {
  fakes::PutCrds(server_);
  server_.Remove(kube::kCustomResourceDefinitions, {"", "nodecaches.cachewarm.io"});
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(check_.Problem(),
              HasSubstr("CustomResourceDefinition nodecaches.cachewarm.io does not exist; run "
                        "kubectl apply --server-side -f crds/"));
  fakes::PutCrds(server_);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Passes());
}

TEST_F(CrdCheckTest, ForbiddenReadDelaysByFifteenSeconds) {
  Refuse(absl::PermissionDeniedError("may not get customresourcedefinitions"));
  Start();
  Advance(seconds(14));
  EXPECT_THAT(check_.Problem(), HasSubstr("may not get customresourcedefinitions"));
  EXPECT_GT(reads_, 1) << "the role may be applied a moment later";
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Passes());
  EXPECT_EQ(log_.Count("CustomResourceDefinitions not compared;"), 1);
}

TEST_F(CrdCheckTest, RightThatIsGrantedInTimeIsUsed) {
  fakes::PutCrds(server_);
  fakes::MakeWarmupCrdOlder(server_);
  Refuse(absl::PermissionDeniedError("may not get customresourcedefinitions"));
  Start();
  Advance(seconds(5));
  Refuse(absl::OkStatus());
  Advance(seconds(60));
  EXPECT_THAT(check_.Problem(), HasSubstr("has no field status.starts"));
}

TEST_F(CrdCheckTest, SilentApiServerDelaysByTwoMinutes) {
  Refuse(absl::UnavailableError("no route to host"));
  Start();
  Advance(seconds(110));
  EXPECT_THAT(check_.Problem(), HasSubstr("no route to host"));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(20));
  EXPECT_TRUE(Passes());
  EXPECT_EQ(log_.Count("CustomResourceDefinitions not compared;"), 1);
}

TEST_F(CrdCheckTest, ForbiddenReadAfterAnOutageDoesNotPassAtOnce) {
  Refuse(absl::UnavailableError("no route to host"));
  Start();
  Advance(seconds(60));
  Refuse(absl::PermissionDeniedError("roles not read yet"));
  Advance(seconds(10));
  EXPECT_THAT(check_.Problem(), HasSubstr("roles not read yet"));
}

TEST_F(CrdCheckTest, RightThatIsWithdrawnAfterAnOlderCrdDelaysByFifteenSeconds) {
  fakes::PutCrds(server_);
  fakes::MakeWarmupCrdOlder(server_);
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  Refuse(absl::PermissionDeniedError("may not get customresourcedefinitions"));
  Advance(seconds(10));
  EXPECT_NE(check_.Problem(), "");
  clock_.Advance(seconds(10));
  EXPECT_TRUE(Passes());
}

TEST_F(CrdCheckTest, OutageDoesNotHideAnOlderCrd) {
  fakes::PutCrds(server_);
  fakes::MakeWarmupCrdOlder(server_);
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  Refuse(absl::UnavailableError("no route to host"));
  Advance(seconds(300));
  EXPECT_THAT(check_.Problem(), HasSubstr("no route to host"));
  Refuse(absl::OkStatus());
  Advance(seconds(10));
  EXPECT_THAT(check_.Problem(), HasSubstr("has no field status.starts"));
}

TEST_F(CrdCheckTest, StopEndsTheCheckAndItsWaiters) {
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  auto waiting =
      std::async(std::launch::async, [this] { return check_.AwaitPassed(stop_.get_token()); });
  stop_.request_stop();
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(running_.wait_for(seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace cachewarm::op
