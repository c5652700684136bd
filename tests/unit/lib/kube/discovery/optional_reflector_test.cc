// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/discovery/optional_reflector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "lib/codec/json_value.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using fakes::Await;

Json RolloutNamed(const std::string& name) {
  return {{"metadata", {{"namespace", "default"}, {"name", name}}}};
}

class OptionalReflectorTest : public testing::Test {
 protected:
  OptionalReflectorTest()
      : server_(clock_),
        optional_({server_, clock_, [] { return 0.5; }, log_}, {.resource = kRollouts}) {
    optional_.OnChange(
        [this](const Change& change) { (change.after == nullptr ? gone_ : came_) += 1; });
  }

  void Start() {
    running_ = std::jthread([this](std::stop_token stop) { optional_.Run(stop); });
  }
  // Advances to the next check and waits until the reflector sleeps before the one after it.
  void NextLook() {
    const size_t before = Asked();
    ASSERT_TRUE(Await([&] {
      clock_.Advance(Duration(5'000));
      return Asked() > before;
    }));
  }
  size_t Asked() const {
    const auto requests = server_.Requests();
    return static_cast<size_t>(
        std::count_if(requests.begin(), requests.end(),
                      [](const std::string& request) { return request.starts_with("get path"); }));
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  fakes::FakeApiServer server_;
  OptionalReflector optional_;
  std::atomic<int> came_ = 0;
  std::atomic<int> gone_ = 0;
  std::jthread running_;
};

TEST_F(OptionalReflectorTest, UnservedKindIsSyncedAndNeverListed) {
  server_.Serve(kRollouts, false);
  Start();
  ASSERT_TRUE(Await([&] { return optional_.store().HasSynced(); }));
  NextLook();
  EXPECT_EQ(optional_.store().size(), 0U);
  EXPECT_TRUE(log_.warnings().empty());
  const auto requests = server_.Requests();
  EXPECT_TRUE(std::all_of(requests.begin(), requests.end(), [](const std::string& request) {
    return request.starts_with("get path");
  }));
}

TEST_F(OptionalReflectorTest, DetectsKindInstalledLater) {
  server_.Serve(kRollouts, false);
  server_.Put(kRollouts, RolloutNamed("a"));
  Start();
  ASSERT_TRUE(Await([&] { return optional_.store().HasSynced(); }));
  server_.Serve(kRollouts, true);
  NextLook();
  EXPECT_TRUE(Await([&] { return optional_.store().size() == 1; }));
  EXPECT_TRUE(Await([&] { return came_ == 1; }));
  server_.Put(kRollouts, RolloutNamed("b"));
  EXPECT_TRUE(Await([&] { return came_ == 2; }));
}

TEST_F(OptionalReflectorTest, DropsObjectsAfterTwoAbsentChecks) {
  server_.Put(kRollouts, RolloutNamed("a"));
  Start();
  ASSERT_TRUE(Await([&] { return came_ == 1 && server_.watches() == 1; }));
  server_.Serve(kRollouts, false);
  NextLook();
  EXPECT_EQ(optional_.store().size(), 1U) << "one response may be wrong";
  NextLook();
  EXPECT_TRUE(Await([&] { return gone_ == 1; }));
  EXPECT_EQ(optional_.store().size(), 0U);
  EXPECT_TRUE(Await([&] { return server_.watches() == 0; }));
  server_.Serve(kRollouts, true);
  NextLook();
  EXPECT_TRUE(Await([&] { return came_ == 2; })) << "it is listed again";
}

TEST_F(OptionalReflectorTest, ForbiddenKindCountsAsAbsentAndWarnsOnce) {
  server_.Intercept([](const Request& request) {
    return request.verb == "list" ? absl::PermissionDeniedError("no") : absl::OkStatus();
  });
  Start();
  ASSERT_TRUE(Await([&] { return optional_.store().HasSynced(); }));
  NextLook();
  NextLook();
  EXPECT_EQ(log_.warnings().size(), 1U);
}

TEST_F(OptionalReflectorTest, FailedCheckChangesNothing) {
  server_.Put(kRollouts, RolloutNamed("a"));
  Start();
  ASSERT_TRUE(Await([&] { return came_ == 1; }));
  server_.Intercept([](const Request& request) {
    return request.resource == "path" ? absl::UnavailableError("down") : absl::OkStatus();
  });
  NextLook();
  NextLook();
  EXPECT_EQ(optional_.store().size(), 1U);
  EXPECT_EQ(gone_, 0);
}

TEST(ListsResource, FindsKindAndIgnoresMalformedLists) {
  EXPECT_TRUE(
      ListsResource({{"resources", {{{"name", "rollouts"}, {"kind", "Rollout"}}}}}, kRollouts));
  EXPECT_FALSE(
      ListsResource({{"resources", {{{"name", "workflows"}, {"kind", "Workflow"}}}}}, kRollouts));
  for (const Json& odd :
       {Json(), Json::array(), Json{{"resources", 1}}, Json{{"resources", {1}}}}) {
    EXPECT_FALSE(ListsResource(odd, kRollouts)) << odd;
  }
}

}  // namespace
}  // namespace cachewarm::kube
