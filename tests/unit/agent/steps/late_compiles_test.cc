// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/late_compiles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "tests/unit/agent/steps/starts_fixture.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const std::string kTree(32, 'a');
const std::string kOtherTree(32, 'b');

class LateCompilesTest : public StartsFixture {
 protected:
  LateCompilesTest() : late_(context_, spans_) {
    spec_.warmups = {{.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name}};
    Activate(kTree, -100);
    Poll();
  }

  void Activate(const std::string& generation, int second) {
    StartsFixture::Activate(generation, second);
    trees_.emplace(generation, kMount);
  }
  void Poll() {
    tables_.Update(spec_.warmups);
    spans_.Update(spec_);
    late_.Poll(spec_.warmups, trees_);
  }
  // Polls as the agent does, until `second`.
  void PollUntil(int second) {
    while (clock_.Now() < begin_ + seconds(second)) {
      clock_.Advance(seconds(5));
      Poll();
    }
  }
  api::LateCompiles Report() const { return late_.ReportOf(kMount.uid); }
  void Acknowledge() {
    spec_.warmups[0].late_counted = Report().report;
    Poll();
  }

  LateCompiles late_;
  api::NodeCacheSpec spec_;
  std::map<std::string, Mount> trees_;
};

TEST_F(LateCompilesTest, EntryAfterReadyIsReported) {
  watcher_.SetEvents(kTree, {Compiled(5, "fstart"), Compiled(15, "flate"), Compiled(16, "fmore")});
  spec_.starts = {Window("a", 3, 10)};
  PollUntil(70);
  EXPECT_EQ(Report().entries, 2);
  EXPECT_GT(Report().report, 0);
  EXPECT_EQ(Report().first_time, std::chrono::floor<seconds>(begin_ + seconds(15)));
  EXPECT_EQ(Report().last_time, std::chrono::ceil<seconds>(begin_ + seconds(16)));
}

TEST_F(LateCompilesTest, StartThatIsRequestedAfterItsCompileIsNotLate) {
  watcher_.SetEvents(kTree, {Compiled(5, "fstart")});
  PollUntil(20);
  spec_.starts = {Window("a", 3, 0)};
  PollUntil(120);
  EXPECT_EQ(Report(), api::LateCompiles());
}

TEST_F(LateCompilesTest, StartThatWasCountedBeforeTheEventsWereReadIsNotLate) {
  watcher_.SetEvents(kTree, {Compiled(5, "fstart")});
  spec_.starts = {Window("a", 3, 10)};
  PollUntil(15);
  spec_.starts = {};
  PollUntil(120);
  EXPECT_EQ(Report(), api::LateCompiles());
}

TEST_F(LateCompilesTest, StartThatLeavesTheSpecUnreadyEndsThen) {
  watcher_.SetEvents(kTree, {Compiled(14, "fstart"), Compiled(40, "flate")});
  spec_.starts = {Window("a", 3, 0)};
  PollUntil(15);
  spec_.starts = {};
  PollUntil(120);
  EXPECT_EQ(Report().entries, 1);
  EXPECT_EQ(Report().first_time, std::chrono::floor<seconds>(begin_ + seconds(40)));
}

TEST_F(LateCompilesTest, EntriesThatABuilderCompilesUntilItsCaptureEndsAreInTheBundle) {
  watcher_.SetEvents(kTree,
                     {Compiled(5, "fstart"), Compiled(30, "frequest"), Compiled(80, "flate")});
  spec_.captures = {Request()};
  spec_.captures[0].started_time = begin_ + seconds(3);
  PollUntil(50);
  spec_.captures = {};
  PollUntil(180);
  EXPECT_EQ(Report().entries, 1);
  EXPECT_EQ(Report().first_time, std::chrono::floor<seconds>(begin_ + seconds(80)));
}

TEST_F(LateCompilesTest, StartInAnotherTreeDoesNotHideACompile) {
  watcher_.SetEvents(kTree, {Compiled(60, "flate")});
  watcher_.SetEvents(kOtherTree, {Compiled(60, "fstart")});
  Activate(kOtherTree, 1);
  spec_.starts = {Window("a", 50, 70)};
  PollUntil(150);
  EXPECT_EQ(Report().entries, 1);
}

TEST_F(LateCompilesTest, StartOfAnotherWarmupDoesNotHideACompile) {
  watcher_.SetEvents(kTree, {Compiled(60, "flate")});
  api::StartWindow other = Window("a", 50, 70);
  other.warmup_uid = "uid-2";
  spec_.starts = {other};
  PollUntil(150);
  EXPECT_EQ(Report().entries, 1);
}

TEST_F(LateCompilesTest, NextReportFollowsTheCountOfTheFirst) {
  watcher_.SetEvents(kTree, {Compiled(20, "fa"), Compiled(100, "fb"), Compiled(101, "fc")});
  PollUntil(300);
  const api::LateCompiles first = Report();
  EXPECT_EQ(first.entries, 1);
  Acknowledge();
  const api::LateCompiles second = Report();
  EXPECT_EQ(second.entries, 2);
  EXPECT_GT(second.report, first.report);
  Acknowledge();
  EXPECT_EQ(Report(), api::LateCompiles());
}

TEST_F(LateCompilesTest, EntryThatIsWrittenAgainCountsOnce) {
  watcher_.SetEvents(kTree, {Compiled(20, "fa"), Compiled(100, "fa"), Compiled(200, "fa")});
  PollUntil(100);
  Acknowledge();
  PollUntil(400);
  EXPECT_EQ(Report(), api::LateCompiles());
}

TEST_F(LateCompilesTest, ReportsOfOneWarmupAreAMinuteApart) {
  watcher_.SetEvents(kTree, {Compiled(20, "fa"), Compiled(35, "fb")});
  PollUntil(60);
  const int64_t first = Report().report;
  ASSERT_GT(first, 0);
  Acknowledge();
  PollUntil(300);
  EXPECT_GE(Report().report - first, 60'000);
}

TEST_F(LateCompilesTest, RestartedAgentKeepsItsReportAndCountsNothingTwice) {
  watcher_.SetEvents(kTree, {Compiled(20, "fa")});
  PollUntil(100);
  const api::LateCompiles reported = Report();
  LateCompiles restarted(context_, spans_);
  restarted.Adopt({{.uid = kMount.uid, .late_compiles = reported}});
  for (int i = 0; i < 60; ++i) {
    clock_.Advance(seconds(5));
    restarted.Poll(spec_.warmups, trees_);
  }
  EXPECT_EQ(restarted.ReportOf(kMount.uid), reported);
  spec_.warmups[0].late_counted = reported.report;
  restarted.Poll(spec_.warmups, trees_);
  EXPECT_EQ(restarted.ReportOf(kMount.uid), api::LateCompiles());
}

TEST_F(LateCompilesTest, ReportAfterTheClockWasSetBackHasALargerNumber) {
  spec_.warmups[0].late_counted = (begin_ + std::chrono::hours(5)).time_since_epoch().count();
  watcher_.SetEvents(kTree, {Compiled(20, "fa")});
  PollUntil(100);
  EXPECT_EQ(Report().entries, 1);
  EXPECT_GT(Report().report, spec_.warmups[0].late_counted);
}

TEST_F(LateCompilesTest, TreeCountsALimitedNumberOfEntries) {
  std::vector<FileEvent> events;
  for (size_t i = 0; i < LateCompiles::kEntriesMax + 500; ++i) {
    events.push_back(Compiled(20, fmt::format("f{}", i)));
  }
  watcher_.SetEvents(kTree, events);
  PollUntil(70);
  EXPECT_EQ(Report().entries, static_cast<int>(LateCompiles::kEntriesMax));
}

TEST_F(LateCompilesTest, WarmupThatLeavesTheSpecIsForgotten) {
  watcher_.SetEvents(kTree, {Compiled(20, "fa")});
  PollUntil(70);
  ASSERT_EQ(Report().entries, 1);
  const auto warmups = spec_.warmups;
  spec_.warmups = {};
  Poll();
  spec_.warmups = warmups;
  PollUntil(200);
  EXPECT_EQ(Report(), api::LateCompiles());
}

}  // namespace
}  // namespace cachewarm::agent
