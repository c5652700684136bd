// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/stop_after.h"

#include <gtest/gtest.h>

#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm::kube {
namespace {

constexpr Duration kLimit{1'000};

TEST(StopAfter, FiresAtTheLimitAndNotBefore) {
  fakes::FakeClock clock;
  const StopAfter over(clock, kLimit);
  clock.Advance(kLimit - Duration(1));
  EXPECT_FALSE(over.token().stop_requested());
  EXPECT_TRUE(fakes::Await([&] {
    clock.Advance(Duration(1));
    return over.token().stop_requested();
  }));
}

TEST(StopAfter, FiresWithTheOuterToken) {
  fakes::FakeClock clock;
  std::stop_source outer;
  const StopAfter over(clock, kLimit, outer.get_token());
  EXPECT_FALSE(over.token().stop_requested());
  outer.request_stop();
  EXPECT_TRUE(over.token().stop_requested());
}

TEST(StopAfter, FiresAtOnceIfOuterTokenIsStopped) {
  fakes::FakeClock clock;
  std::stop_source outer;
  outer.request_stop();
  EXPECT_TRUE(StopAfter(clock, kLimit, outer.get_token()).token().stop_requested());
}

}  // namespace
}  // namespace cachewarm::kube
