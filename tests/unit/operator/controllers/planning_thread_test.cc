// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/planning_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

namespace cachewarm::controllers {
namespace {

TEST(PlanningThread, ReturnsTheResultOfWorkOnAnotherThread) {
  PlanningThread thread;
  const auto [id, value] =
      thread.Run([] { return std::pair(std::this_thread::get_id(), std::make_unique<int>(7)); });
  EXPECT_NE(id, std::this_thread::get_id());
  EXPECT_EQ(*value, 7);
}

TEST(PlanningThread, RunsTheWorkOfManyThreadsOneAfterAnotherOnOneThread) {
  PlanningThread thread;
  std::atomic<int> running = 0;
  std::atomic<int> at_once = 0;
  std::set<std::thread::id> ids;  // only the planning thread writes it
  std::vector<std::jthread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int each = 0; each < 50; ++each) {
        thread.Run([&] {
          at_once = std::max(at_once.load(), ++running);
          ids.insert(std::this_thread::get_id());
          return --running;
        });
      }
    });
  }
  callers.clear();
  EXPECT_EQ(at_once, 1);
  EXPECT_EQ(ids.size(), 1);
}

TEST(PlanningThread, GivesAnExceptionOfTheWorkToItsCallerAndGoesOn) {
  PlanningThread thread;
  EXPECT_THROW(thread.Run([]() -> int { throw std::runtime_error("no memory"); }),
               std::runtime_error);
  EXPECT_EQ(thread.Run([] { return 1; }), 1);
}

}  // namespace
}  // namespace cachewarm::controllers
