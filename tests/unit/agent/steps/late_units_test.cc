// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/late_units.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/starts_fixture.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const std::string kTree(32, 'a');
const std::string kNextTree(32, 'b');

// A warmup that harvests, whose pods mount kTree, made from a bundle with one unit.
class LateUnitsTest : public StartsFixture {
 protected:
  LateUnitsTest() : units_(std::make_unique<LateUnits>(context_, tables_, spans_)) {
    spec_.warmups = {{.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .harvest = true}};
    Activate(kTree, -100, {"inductor/fxgraph/ab/fbundle/e"});
    Record(kTree, {});
    Poll();
  }

  // Makes the tree the active one; its bundle has these files.
  void Activate(const std::string& generation, int second, const std::vector<std::string>& files) {
    StartsFixture::Activate(generation, second);
    std::vector<EntryRecord> entries;
    for (const std::string& path : files) {
      entries.push_back({.path = path, .kind = "torchinductor", .digest = DigestOf(path)});
    }
    ASSERT_TRUE(WriteEntryRecords(root_.dir(), generation, entries, fs::Durable::kNow).ok());
    trees_.emplace(generation, kMount);
    inventory_.links[kMount] = {.state = LinkState::kActive, .generation = generation};
  }
  // Sets the events of a tree, and writes the files that they are about.
  void Record(const std::string& generation, const std::vector<FileEvent>& events) {
    for (const FileEvent& event : events) {
      root_.Write(GenerationPath(generation) + "/" + event.path, "x");
    }
    watcher_.SetEvents(generation, events);
  }
  FileEvent Opened(int second, const std::string& path) const {
    return Event(FileEventType::kOpened, second, path);
  }
  void Poll() {
    tables_.Update(spec_.warmups);
    spans_.Update(spec_);
    units_->Poll(spec_.warmups, trees_, inventory_);
  }
  void PollUntil(int second) {
    while (clock_.Now() < begin_ + seconds(second)) {
      clock_.Advance(seconds(5));
      Poll();
    }
  }
  api::Harvestable Offer() { return units_->OfferOf(kMount.uid); }
  HarvestSource Source() const {
    api::CaptureRequest request = Request();
    request.generation = kTree;
    return units_->SourceOf(request);
  }

  std::unique_ptr<LateUnits> units_;
  api::NodeCacheSpec spec_;
  std::map<std::string, Mount> trees_;
  Inventory inventory_;
};

TEST_F(LateUnitsTest, UnitsAfterReadyAreOffered) {
  spec_.starts = {Window("a", 3, 10)};
  Record(kTree, {Compiled(5, "fstart"), Compiled(15, "flate"), Compiled(16, "fmore")});
  PollUntil(60);
  EXPECT_EQ(Offer().units, 2);
  EXPECT_EQ(Offer().generation, kTree);
  EXPECT_EQ(Offer().run_as, kMount.run_as);
  EXPECT_EQ(Offer().message, "");
  EXPECT_FALSE(Offer().set.empty());
}

TEST_F(LateUnitsTest, WarmupThatHarvestsNothingOffersNothing) {
  spec_.warmups[0].harvest = false;
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  EXPECT_EQ(Offer(), api::Harvestable());
}

TEST_F(LateUnitsTest, FilesOfOneUnitAreOneUnit) {
  Record(kTree, {Compiled(15, "flate", "e1"), Compiled(16, "flate", "e2")});
  PollUntil(60);
  EXPECT_EQ(Offer().units, 1);
}

TEST_F(LateUnitsTest, TemporaryNameIsNoUnit) {
  watcher_.SetEvents(kTree, {Compiled(15, "fgone")});
  PollUntil(60);
  EXPECT_EQ(Offer(), api::Harvestable());
}

TEST_F(LateUnitsTest, UnitOfTheBundleThatIsWrittenAgainIsNotOffered) {
  Record(kTree, {Compiled(15, "fbundle", "another")});
  PollUntil(60);
  EXPECT_EQ(Offer(), api::Harvestable());
}

TEST_F(LateUnitsTest, UnitsOfALargerBundleAreNoLongerOffered) {
  Record(kTree, {Compiled(15, "fa"), Compiled(16, "fb")});
  PollUntil(60);
  const std::string set = Offer().set;
  Activate(kNextTree, 60, {"inductor/fxgraph/ab/fa/of-another-node"});
  Record(kNextTree, {});
  Poll();
  EXPECT_EQ(Offer().units, 1);
  EXPECT_EQ(Offer().set, set) << "nothing was compiled since";
  Activate(std::string(32, 'c'), 70, {"inductor/fxgraph/ab/fa/e", "inductor/fxgraph/ab/fb/e"});
  Poll();
  EXPECT_EQ(Offer(), api::Harvestable());
}

// The operator refuses an earlier tree after a suspension, so its offer must not hide another.
TEST_F(LateUnitsTest, ActiveTreeIsOfferedBeforeEarlierOnesOnceTreesWereRenewed) {
  Record(kTree, {Compiled(15, "fa"), Compiled(16, "fb")});
  PollUntil(60);
  Activate(kNextTree, 60, {"inductor/fxgraph/ab/fbundle/e"});
  Record(kNextTree, {Compiled(80, "fc")});
  PollUntil(130);
  EXPECT_EQ(Offer().generation, kTree) << "it has more units";
  spec_.warmups[0].renew = 1;
  Poll();
  EXPECT_EQ(Offer().generation, kNextTree);
  EXPECT_EQ(Offer().units, 1);
  watcher_.RemoveTree(kNextTree);  // its record is incomplete then
  PollUntil(200);
  EXPECT_EQ(Offer().generation, kTree) << "the active one cannot be harvested";
}

TEST_F(LateUnitsTest, OfferThatGrowsIsReportedOnceAMinute) {
  std::vector<FileEvent> events;
  for (int i = 0; i < 30; ++i) {
    events.push_back(Compiled(15 + i * 10, "f" + std::to_string(i)));
  }
  Record(kTree, events);
  std::set<std::string> offers;
  for (int second = 60; second <= 300; second += 5) {
    PollUntil(second);
    offers.insert(Offer().set);
  }
  EXPECT_GE(offers.size(), 4U);
  EXPECT_LE(offers.size(), 5U) << "each one is a write of the status";
}

TEST_F(LateUnitsTest, TreeThatLacksNothingIsReportedAtOnce) {
  Record(kTree, {Compiled(15, "fa")});
  PollUntil(60);
  ASSERT_EQ(Offer().units, 1);
  Activate(kNextTree, 60, {"inductor/fxgraph/ab/fa/e"});
  Poll();
  EXPECT_EQ(Offer(), api::Harvestable());
}

TEST_F(LateUnitsTest, EqualUnitsOfTwoNodesHaveOneSet) {
  Record(kTree, {Compiled(15, "fa", "x"), Compiled(16, "fb", "x")});
  PollUntil(60);
  const std::string set = Offer().set;
  units_ = std::make_unique<LateUnits>(context_, tables_, spans_);
  Poll();
  Record(kTree, {Compiled(75, "fb", "y"), Compiled(76, "fa", "y")});
  PollUntil(130);
  EXPECT_EQ(Offer().set, set);
  Record(kTree, {Compiled(145, "fc")});
  PollUntil(200);
  EXPECT_NE(Offer().set, set);
}

TEST_F(LateUnitsTest, FilesOfAStartAreNotTaken) {
  spec_.starts = {Window("a", 3, 10)};
  Record(kTree, {Compiled(5, "fstart"), Compiled(15, "flate"),
                 Opened(16, "inductor/cd/cabc.main.so"), Opened(16, "unknown/x")});
  PollUntil(60);
  ASSERT_NE(Source().used, nullptr) << Source().refusal << Source().wait;
  EXPECT_FALSE(Source().used->all);
  EXPECT_EQ(Source().used->paths, (std::set<std::string, std::less<>>{
                                      "inductor/cd/cabc.main.so", "inductor/fxgraph/ab/flate/e"}));
}

TEST_F(LateUnitsTest, FilesAreCopiedOnlyAfterAChange) {
  Record(kTree, {Compiled(15, "fa"), Compiled(100, "fb")});
  PollUntil(60);
  const HarvestSource first = Source();
  ASSERT_NE(first.used, nullptr) << first.refusal << first.wait;
  PollUntil(90);
  EXPECT_EQ(Source().used, first.used);
  PollUntil(170);
  ASSERT_NE(Source().used, nullptr);
  EXPECT_EQ(Source().used->paths.size(), 2U);
  EXPECT_EQ(first.used->paths.size(), 1U) << "a capture that runs keeps its files";
}

TEST_F(LateUnitsTest, StartThatIsNotCompleteIsAwaited) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  spec_.starts = {Window("b", 55, 0)};
  Poll();
  EXPECT_NE(Source().wait.find("start of a pod"), std::string::npos) << Source().wait;
  spec_.starts = {Window("b", 55, 62)};
  PollUntil(70);
  EXPECT_EQ(Source().wait, "");
}

TEST_F(LateUnitsTest, WritesAreAwaited) {
  Record(kTree, {Compiled(15, "flate"), Compiled(55, "fmore")});
  PollUntil(60);
  EXPECT_NE(Source().wait.find("write no file"), std::string::npos) << Source().wait;
  PollUntil(90);
  EXPECT_EQ(Source().wait, "");
  ASSERT_NE(Source().used, nullptr);
}

TEST_F(LateUnitsTest, HarvestIsNoStart) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  api::CaptureRequest request = Request();
  request.generation = kTree;
  spec_.captures = {request};
  Poll();
  EXPECT_EQ(Source().wait, "");
}

TEST_F(LateUnitsTest, LostEventsMakeTheTreePartial) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  watcher_.RemoveTree(kTree);  // its record is incomplete then
  PollUntil(100);
  EXPECT_NE(Offer().message.find("lost"), std::string::npos);
  EXPECT_NE(Source().refusal.find("lost"), std::string::npos);
}

TEST_F(LateUnitsTest, DamagedTreeIsRefused) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  ASSERT_TRUE(WriteDamagedTree(root_.dir(), kTree, {}).ok());
  EXPECT_NE(Offer().message.find("damaged"), std::string::npos);
  EXPECT_NE(Source().refusal.find("damaged"), std::string::npos);
}

TEST_F(LateUnitsTest, RestartedAgentRefusesTheRequestOfItsPredecessor) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  units_ = std::make_unique<LateUnits>(context_, tables_, spans_);
  EXPECT_NE(Source().refusal.find("no longer watched"), std::string::npos);
  Poll();
  EXPECT_NE(Source().refusal.find("restarted"), std::string::npos);
}

TEST_F(LateUnitsTest, RequestAboutTheTreeOfAnotherUserIsRefused) {
  Record(kTree, {Compiled(15, "flate")});
  PollUntil(60);
  api::CaptureRequest request = Request();
  request.generation = kTree;
  request.run_as = "u1000";
  EXPECT_FALSE(units_->SourceOf(request).refusal.empty());
}

TEST_F(LateUnitsTest, TreeWithTooManyUnitsIsRefused) {
  std::vector<FileEvent> events;
  for (size_t i = 0; i <= LateUnits::kUnitsMax; ++i) {
    events.push_back(Compiled(15, "f" + std::to_string(i)));
  }
  Record(kTree, events);
  PollUntil(60);
  EXPECT_EQ(Offer().units, 0);
  EXPECT_NE(Offer().message.find("more than"), std::string::npos);
}

}  // namespace
}  // namespace cachewarm::agent
