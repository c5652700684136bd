// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/eviction.h"

#include <gtest/gtest.h>

#include "agent/sync/tree_names.h"
#include "tests/unit/agent/sync/described_node.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const Mount kListed = MountOf(Warmup());
const Mount kUnlisted{"team", "gone", "uid-2", "image"};

WallTime At(int second) {
  return WallTime(seconds(1'700'000'000 + second));
}

// A node described by a test. Offers() returns "<cause> <tree>" in the order of removal.
class EvictionTest : public ::testing::Test {
 protected:
  EvictionTest() { spec_.warmups = {Warmup({Bundle(9)})}; }

  // Adds a tree of `mount` to which no link leads since `unlinked`.
  std::string Unlinked(const Mount& mount, int number, int unlinked, int64_t bytes = 10) {
    std::string id = GenerationId(mount, {DigestNumber(number)});
    AddTree(mount, id, unlinked, bytes);
    names_[id] = "tree-" + std::to_string(number);
    return id;
  }
  std::string Cold(const Mount& mount, int attempt, int unlinked) {
    std::string id = ColdId(mount, attempt);
    AddTree(mount, id, unlinked, 1);
    names_[id] = "cold-" + std::to_string(attempt);
    return id;
  }
  std::string Linked(const Mount& mount, int number) {
    std::string id = GenerationId(mount, {DigestNumber(number)});
    AddTree(mount, id, 0, 10);
    inventory_.generations[id].unlinked_time = {};
    inventory_.links[mount] = {LinkState::kActive, id};
    names_[id] = "tree-" + std::to_string(number);
    return id;
  }
  void AddTree(const Mount& mount, const std::string& id, int unlinked, int64_t bytes) {
    inventory_.generations[id] = {
        .warmup_uid = mount.uid, .run_as = mount.run_as, .unlinked_time = At(unlinked)};
    usage_[id] = {.bytes = bytes, .inodes = 1};
  }

  EvictionPlan Plan() const {
    return PlanEviction({.desired = spec_,
                         .inventory = inventory_,
                         .first_seen = first_seen_,
                         .in_use = in_use_,
                         .usage = usage_,
                         .shortage = shortage_});
  }
  std::vector<std::string> Offers() const {
    std::vector<std::string> offers;
    for (const EvictionOffer& offer : Plan().offers) {
      const auto name = names_.find(offer.tree.generation);
      offers.push_back(fmt::format("{} {}{}", Name(offer.cause),
                                   name == names_.end() ? offer.tree.generation : name->second,
                                   offer.link.has_value() ? " with link" : ""));
    }
    return offers;
  }

  using Texts = std::vector<std::string>;

  api::NodeCacheSpec spec_;
  Inventory inventory_;
  std::map<std::string, WallTime> first_seen_;
  std::set<std::string> in_use_;
  std::map<std::string, DiskAmount> usage_;
  std::map<std::string, std::string> names_;
  DiskAmount shortage_;
};

TEST_F(EvictionTest, KeepsTheActiveTreeAndTheWantedOne) {
  Linked(kListed, 1);
  Unlinked(kListed, 9, 5);
  EXPECT_EQ(Offers(), Texts{});
}

TEST_F(EvictionTest, OffersTreesBeyondRetainOldestFirst) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 20);
  Unlinked(kListed, 3, 40);
  Unlinked(kListed, 4, 10);
  EXPECT_EQ(Offers(), (Texts{"superseded tree-4", "superseded tree-2"}));
  spec_.warmups[0].retain = 2;
  EXPECT_EQ(Offers(), Texts{"superseded tree-4"});
  spec_.warmups[0].retain = 0;
  EXPECT_EQ(Offers().size(), 3U);
}

TEST_F(EvictionTest, OfferHasTheTimeWithoutLinkInWholeSecondsRoundedUp) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 20);
  const std::string oldest = Unlinked(kListed, 3, 10);
  inventory_.generations[oldest].unlinked_time = At(10) - Duration(1);
  ASSERT_EQ(Offers(), Texts{"superseded tree-3"});
  EXPECT_EQ(Plan().offers[0].tree.unlinked_time, At(10));
}

TEST_F(EvictionTest, RetainsPerUserOfThePods) {
  Mount other = kListed;
  other.run_as = "image";
  Linked(kListed, 1);
  Linked(other, 1);
  Unlinked(kListed, 2, 10);
  Unlinked(other, 3, 20);
  EXPECT_EQ(Offers(), Texts{});
}

TEST_F(EvictionTest, RemovesUnusableTreesBeforeColdOnesBeforeSuperseded) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 1);
  Unlinked(kListed, 3, 2);
  Cold(kListed, 0, 3);
  const std::string damaged = Unlinked(kListed, 4, 4);
  inventory_.damaged[damaged] = {};
  inventory_.retired["retired-x-0"] = {.unlinked_time = At(5)};
  EXPECT_EQ(Offers(),
            (Texts{"unusable tree-4", "unusable retired-x-0", "cold cold-0", "superseded tree-2"}));
}

TEST_F(EvictionTest, OffersTheLinkedTreeOfAnUnlistedWarmupWithItsLink) {
  Linked(kListed, 1);
  Linked(kUnlisted, 2);
  Unlinked(kUnlisted, 3, 10);
  EXPECT_EQ(Offers(), Texts{"warmup_gone tree-2 with link"})
      << "its warmup may exist, so one tree is retained";
  EXPECT_EQ(Plan().offers[0].tree.unlinked_time, WallTime{});
}

TEST_F(EvictionTest, OffersEveryTreeOfAnUnlistedWarmupWithoutLink) {
  Linked(kListed, 1);
  Unlinked(kUnlisted, 2, 10);
  Unlinked(kUnlisted, 3, 20);
  EXPECT_EQ(Offers(), (Texts{"warmup_gone tree-2", "warmup_gone tree-3"}));
}

TEST_F(EvictionTest, OffersRetainedTreesOnlyIfSpaceIsShort) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 10, 100);
  Unlinked(kListed, 3, 20, 100);
  Unlinked(kListed, 4, 30, 100);
  spec_.warmups[0].retain = 3;
  EXPECT_EQ(Offers(), Texts{});
  shortage_ = {.bytes = 101};
  EXPECT_EQ(Offers(),
            (Texts{"disk_pressure tree-2", "disk_pressure tree-3", "disk_pressure tree-4"}))
      << "pods may have the oldest ones mounted";
}

TEST_F(EvictionTest, RemovesOnlyAsManyRetainedTreesAsSpaceIsShort) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 10, 100);
  Unlinked(kListed, 3, 20, 100);
  Unlinked(kListed, 4, 30, 100);
  spec_.warmups[0].retain = 3;
  shortage_ = {.bytes = 101};
  const std::vector<EvictionOffer> offers = Plan().offers;
  ASSERT_EQ(offers.size(), 3U);
  std::vector<api::EvictableTree> confirmed;
  for (const EvictionOffer& offer : offers) {
    confirmed.push_back(offer.tree);
  }
  EXPECT_EQ(ConfirmedOffers(offers, confirmed, {.bytes = 101}).size(), 2U);
  EXPECT_EQ(ConfirmedOffers(offers, confirmed, {.bytes = 100}).size(), 1U);
  EXPECT_EQ(ConfirmedOffers(offers, confirmed, {.inodes = 3}).size(), 3U);
  confirmed.erase(confirmed.begin());
  EXPECT_EQ(ConfirmedOffers(offers, confirmed, {.bytes = 100})[0].tree, offers[1].tree);
}

TEST_F(EvictionTest, TreesThatAreOfferedAnywayRelieveTheDiskFirst) {
  Linked(kListed, 1);
  Unlinked(kListed, 2, 10, 100);
  Unlinked(kListed, 3, 20, 100);
  shortage_ = {.bytes = 100};
  EXPECT_EQ(Offers(), (Texts{"superseded tree-2", "disk_pressure tree-3"}));
  const std::vector<EvictionOffer> offers = Plan().offers;
  EXPECT_EQ(ConfirmedOffers(offers, {offers[0].tree, offers[1].tree}, shortage_).size(), 1U);
}

TEST_F(EvictionTest, UnlinksUnlistedWarmupsWhenRetainedTreesAreNotEnough) {
  Linked(kListed, 1);
  Linked(kUnlisted, 2);
  EXPECT_TRUE(Plan().unlink.empty());
  shortage_ = {.bytes = 5};
  EXPECT_EQ(Plan().unlink, std::vector<Mount>{kUnlisted}) << "never a warmup that is listed";
}

TEST_F(EvictionTest, NeverOffersATreeInUse) {
  Linked(kListed, 1);
  in_use_.insert(Unlinked(kListed, 2, 10));
  in_use_.insert(Unlinked(kListed, 3, 20));
  in_use_.insert(Cold(kListed, 0, 30));
  in_use_.insert(Linked(kUnlisted, 4));
  EXPECT_EQ(Offers(), Texts{});
}

TEST_F(EvictionTest, UsesTheTimeOfTheFirstScanIfTheHistoryHasNone) {
  Linked(kListed, 1);
  const std::string cold = Cold(kListed, 0, 0);
  inventory_.generations[cold].unlinked_time = {};
  EXPECT_EQ(Offers(), Texts{}) << "a zero time would mean that a link leads to it";
  first_seen_[cold] = At(7) + Duration(1);
  ASSERT_EQ(Offers(), Texts{"cold cold-0"});
  EXPECT_EQ(Plan().offers[0].tree.unlinked_time, At(8)) << "rounded up";
}

TEST_F(EvictionTest, LimitsTheOffersAndLeavesRoomForTreesWithoutLink) {
  for (int i = 0; i < 200; ++i) {
    Linked({"team", "gone", "uid-" + std::to_string(i + 10), "image"}, i);
  }
  EXPECT_EQ(Offers().size(), 96U);
  for (int i = 0; i < 200; ++i) {
    Cold(kListed, i, i);
  }
  EXPECT_EQ(Offers().size(), 128U);
}

TEST(ConfirmedOffers, NeedAnEqualEntry) {
  const EvictionOffer offer{
      .tree = {.generation = "a", .warmup_uid = "uid-1", .unlinked_time = At(1)}};
  EXPECT_EQ(ConfirmedOffers({offer}, {offer.tree}, {}).size(), 1U);
  api::EvictableTree other = offer.tree;
  other.unlinked_time = At(2);
  EXPECT_TRUE(ConfirmedOffers({offer}, {other}, {}).empty()) << "linked again meanwhile";
  other = offer.tree;
  other.warmup_uid = "";
  EXPECT_TRUE(ConfirmedOffers({offer}, {other}, {}).empty());
}

}  // namespace
}  // namespace cachewarm::agent
