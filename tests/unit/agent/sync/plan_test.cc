// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "lib/api/reasons.h"
#include "tests/unit/agent/sync/described_node.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
using Texts = std::vector<std::string>;

TEST(Plan, EmptyNodeWithoutWarmupsHasNoSteps) {
  EXPECT_EQ(Node().Steps(), Texts{});
}

TEST(Plan, PreparesEachRunAs) {
  api::WantedWarmup warmup = Warmup();
  warmup.run_as = {"u1000", "image"};
  EXPECT_EQ(Node().Want(warmup).Steps(), (Texts{"prepare u1000", "prepare image"}));
}

TEST(Plan, FlipsLinkToDamagedTreeAndFetchesFreshOne) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const Mount mount = MountOf(warmup);
  Node node;
  node.Want(warmup).Shows(mount, {DigestNumber(1)});
  node.inventory.damaged[GenerationId(mount, {DigestNumber(1)})] = {};
  const std::string fresh = GenerationId(mount, {DigestNumber(1)}, 0, 1);
  EXPECT_EQ(node.Steps(), (Texts{"renew u1000 0", fmt::format("fetch u1000 {} of 1", fresh)}));
  node.Linked(mount, ColdId(mount, 0));
  EXPECT_EQ(node.Steps(), Texts{fmt::format("fetch u1000 {} of 1", fresh)});
  node.inventory.generations[fresh];
  EXPECT_EQ(node.Steps(), Texts{"activate u1000 " + fresh});
  node.Linked(mount, fresh);
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, FlipsLinkToDamagedTreeOfUnwantedWarmup) {
  const Mount mount{"gone", "old", "uid-9", "image"};
  Node node;
  node.Shows(mount, {DigestNumber(1)});
  node.inventory.damaged[GenerationId(mount, {DigestNumber(1)})] = {};
  EXPECT_EQ(node.Steps(), Texts{"renew image 0"});
}

TEST(Plan, RunningFetchIsUnneededOnceNoMountWantsItsTree) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const std::string running = GenerationId(MountOf(warmup), {DigestNumber(1)});
  Node node;
  node.history.fetching = {running};
  Node other = node;
  EXPECT_EQ(node.Want(warmup).Make().unneeded, std::set<std::string>{});
  EXPECT_EQ(other.Want(Warmup({Bundle(2)})).Make().unneeded, std::set<std::string>{running});
  const api::NodeCacheSpec nothing;
  const auto unneeded = [&](bool is_known) {
    return MakePlan({.desired = nothing,
                     .inventory = node.inventory,
                     .history = node.history,
                     .disk = node.disk,
                     .now = kNow,
                     .is_known = is_known})
        .unneeded;
  };
  EXPECT_EQ(unneeded(true), std::set<std::string>{running});
  EXPECT_EQ(unneeded(false), std::set<std::string>{}) << "the spec is not known yet";
}

TEST(Plan, GivesUpAfterThreeDamagedTreesUntilRenewed) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  const Mount mount = MountOf(warmup);
  Node node;
  node.Want(warmup).Linked(mount, ColdId(mount, 0));
  for (int attempt = 0; attempt < kTreesMax; ++attempt) {
    node.inventory.damaged[GenerationId(mount, {DigestNumber(1)}, 0, attempt)] = {
        .path = "inductor/x.so", .message = "its content changed"};
  }
  EXPECT_EQ(node.Steps(), Texts{});
  const FailureState refusal = node.Make().refused.at({"uid-1", DigestNumber(1)});
  EXPECT_EQ(refusal.reason, api::reason::kTreeDamaged);
  EXPECT_NE(refusal.message.find("inductor/x.so: its content changed"), std::string::npos);
  warmup.renew = 1;
  const api::NodeCacheSpec spec{.warmups = {warmup}};
  const Plan plan = MakePlan({.desired = spec,
                              .inventory = node.inventory,
                              .history = node.history,
                              .disk = node.disk,
                              .now = kNow});
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_FALSE(plan.steps.empty());
}

TEST(SelectTree, PrefersExistingTree) {
  const Mount mount{"team", "llama", "uid-1", "image"};
  const std::vector<Digest> digests = {DigestNumber(1)};
  const auto id = [&](int attempt) { return GenerationId(mount, digests, 2, attempt); };
  struct Case {
    std::string what;
    std::vector<int> there;
    std::vector<int> damaged;
    int expected;  // -1: none
  };
  const std::vector<Case> cases = {
      {"nothing yet", {}, {}, 0},
      {"the first", {0}, {}, 0},
      {"the first is damaged", {0}, {0}, 1},
      {"the second replaces it", {0, 1}, {0}, 1},
      {"the damaged tree and its record were removed", {1}, {}, 1},
      {"two damaged", {0, 1}, {0, 1}, 2},
      {"all damaged", {0, 1, 2}, {0, 1, 2}, -1},
  };
  for (const Case& each : cases) {
    Inventory inventory;
    for (const int attempt : each.there) {
      inventory.generations[id(attempt)];
    }
    for (const int attempt : each.damaged) {
      inventory.damaged[id(attempt)];
    }
    const auto tree = SelectTree(inventory, mount, digests, 2);
    EXPECT_EQ(tree.value_or(""), each.expected < 0 ? "" : id(each.expected)) << each.what;
  }
}

TEST(Plan, PreparesMountWithoutUsableLink) {
  struct Case {
    LinkState state;
    bool prepares;
  };
  for (const Case& each : {Case{LinkState::kActive, false}, Case{LinkState::kUnusable, true},
                           Case{LinkState::kDirectory, true}, Case{LinkState::kBroken, true}}) {
    const api::WantedWarmup warmup = Warmup();
    Node node;
    node.Want(warmup);
    const bool has_tree = each.state == LinkState::kActive || each.state == LinkState::kUnusable;
    node.inventory.links[MountOf(warmup)] = {each.state,
                                             has_tree ? ColdId(MountOf(warmup), 0) : std::string()};
    EXPECT_EQ(node.Steps(), each.prepares ? Texts{"prepare u1000"} : Texts{})
        << static_cast<int>(each.state);
  }
}

TEST(Plan, RepairsBrokenLinkOfUnwantedWarmup) {
  Node node;
  node.inventory.links[{"gone", "old", "uid-9", "image"}] = {LinkState::kBroken, ""};
  EXPECT_EQ(node.Steps(), Texts{"prepare image"});
}

TEST(Plan, KeepsLinksOfUnwantedWarmups) {
  Node node;
  node.Linked({"gone", "old", "uid-9", "image"}, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, ConvertsKubeletDirectoriesOfUnwantedWarmupsOnceTheSpecIsKnown) {
  Node node;
  node.inventory.links[{"gone", "old", "uid-9", "u5"}] = {LinkState::kDirectory, ""};
  EXPECT_EQ(node.Steps(), Texts{"prepare u5"}) << "as a tree it can be evicted";
  node.is_known = false;
  EXPECT_EQ(node.Steps(), Texts{}) << "the spec may list the warmup with other folders";
}

TEST(Plan, FetchesMissingGeneration) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1), DigestNumber(2)});
  EXPECT_EQ(Node().Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0)).Steps(),
            Texts{fmt::format("fetch u1000 {} of 2", id)});
}

TEST(Plan, PreparesBeforeItFetches) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1)});
  EXPECT_EQ(Node().Want(warmup).Steps(),
            (Texts{"prepare u1000", fmt::format("fetch u1000 {} of 1", id)}));
}

TEST(Plan, ActivatesExistingGeneration) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.inventory.generations[id];
  EXPECT_EQ(node.Steps(), Texts{"activate u1000 " + id});
}

TEST(Plan, HasNoStepsIfWantedGenerationIsActive) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  EXPECT_EQ(Node().Want(warmup).Shows(MountOf(warmup), {DigestNumber(2), DigestNumber(1)}).Steps(),
            Texts{});
}

TEST(Plan, AbsenceNeverEvicts) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  EXPECT_EQ(Node().Shows(MountOf(warmup), {DigestNumber(1)}).Steps(), Texts{});
  EXPECT_EQ(Node().Want(Warmup()).Shows(MountOf(warmup), {DigestNumber(1)}).Steps(), Texts{});
}

TEST(Plan, RollbackActivatesExistingTree) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const Mount mount = MountOf(warmup);
  Node node;
  node.Want(warmup).Shows(mount, {DigestNumber(2)});
  const std::string old = GenerationId(mount, {DigestNumber(1)});
  node.inventory.generations[old].digests = {DigestNumber(1)};
  EXPECT_EQ(node.Steps(), Texts{"activate u1000 " + old});
}

TEST(Plan, KeepsRunningFetch) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.history.fetching = {id};
  node.inventory.staging = {id};
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, OrdersFetchesByPriority) {
  std::vector<api::WantedWarmup> warmups;
  for (const int priority : {0, 1, 2, 1}) {
    api::WantedWarmup warmup = Warmup({Bundle(priority, 100)});
    warmup.uid = fmt::format("uid-{}", warmups.size());
    warmup.run_as = {fmt::format("u{}", warmups.size())};
    warmup.fetch_priority = priority;
    warmups.push_back(warmup);
  }
  Node node;
  for (const api::WantedWarmup& warmup : warmups) {
    node.Want(warmup).Shows(MountOf(warmup, warmup.run_as[0]), {});
  }
  const auto order = [&] {
    std::string text;
    for (const Step& step : node.Make().steps) {
      const auto* fetch = std::get_if<Fetch>(&step);
      text += fetch == nullptr ? "" : fetch->mount.run_as + " ";
    }
    return text;
  };
  EXPECT_EQ(order(), "u2 u1 u3 u0 ");
  node.disk.limit_bytes = 250;
  EXPECT_EQ(order(), "u2 u1 ");
}

TEST(Plan, DiscardsUnownedStagingTree) {
  Node node;
  node.inventory.staging = {"a", "b"};
  node.history.fetching = {"b"};
  EXPECT_EQ(node.Steps(), Texts{"discard a"});
}

TEST(Plan, FetchesOneTreePerRunAs) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.run_as = {"u1000", "image"};
  Node node;
  node.Want(warmup)
      .Linked(MountOf(warmup, "u1000"), ColdId(MountOf(warmup, "u1000"), 0))
      .Linked(MountOf(warmup, "image"), ColdId(MountOf(warmup, "image"), 0));
  const Texts steps = node.Steps();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_TRUE(steps[0].starts_with("fetch u1000 "));
  EXPECT_TRUE(steps[1].starts_with("fetch image "));
}

TEST(Plan, FetchesOtherBundlesWhileOneWaits) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.history.bundles[{"uid-1", DigestNumber(2)}] = {.count = 1, .not_before = kNow + seconds(5)};
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1)});
  EXPECT_EQ(node.Steps(), Texts{fmt::format("fetch u1000 {} of 1", id)});
  EXPECT_EQ(node.Make().next, kNow + seconds(5));
}

TEST(Plan, RetriesBundleWhenDue) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  node.history.bundles[{"uid-1", DigestNumber(2)}] = {.count = 1, .not_before = kNow};
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1), DigestNumber(2)});
  EXPECT_EQ(node.Steps(), Texts{fmt::format("fetch u1000 {} of 2", id)});
}

TEST(Plan, KeepsActiveTreeWhileAllBundlesWait) {
  const api::WantedWarmup warmup = Warmup({Bundle(2)});
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  node.history.bundles[{"uid-1", DigestNumber(2)}] = {.count = 3, .not_before = kNow + seconds(60)};
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, FailureOfOtherWarmupIsIgnored) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.history.bundles[{"uid-2", DigestNumber(1)}] = {.count = 1, .not_before = kNow + seconds(5)};
  EXPECT_EQ(node.Steps().size(), 1U);
}

TEST(Plan, WaitsForRetryOfGeneration) {
  const api::WantedWarmup warmup = Warmup({Bundle(1)});
  const std::string id = GenerationId(MountOf(warmup), {DigestNumber(1)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.history.generations[id] = {.count = 2, .not_before = kNow + seconds(7)};
  EXPECT_EQ(node.Steps(), Texts{});
  EXPECT_EQ(node.Make().next, kNow + seconds(7));
  node.history.generations[id].not_before = kNow;
  EXPECT_EQ(node.Steps().size(), 1U);
}

TEST(Plan, RefusesFetchAboveByteLimit) {
  const api::WantedWarmup warmup = Warmup({Bundle(1, 600), Bundle(2, 500)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.disk = {.limit_bytes = 2000, .used_bytes = 1000};
  const Plan plan = node.Make();
  EXPECT_TRUE(plan.steps.empty());
  const FailureState& refusal = plan.refused.at({"uid-1", DigestNumber(1)});
  EXPECT_EQ(refusal.reason, api::reason::kOverLimit);
  EXPECT_NE(refusal.message.find("raise byteLimit"), std::string::npos);
  EXPECT_TRUE(plan.refused.contains({"uid-1", DigestNumber(2)}));
}

TEST(Plan, ExactlyTheByteLimitFits) {
  const api::WantedWarmup warmup = Warmup({Bundle(1, 1000)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.disk = {.limit_bytes = 2000, .used_bytes = 1000};
  EXPECT_EQ(node.Steps().size(), 1U);
}

TEST(Plan, RefusesFetchAboveFreeSpace) {
  const api::WantedWarmup warmup = Warmup({Bundle(1, int64_t{1} << 30)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  node.disk = {.free_bytes = (int64_t{1} << 30) + (int64_t{10} << 20),
               .reserve = {.bytes = int64_t{64} << 20}};
  const Plan plan = node.Make();
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_EQ(plan.shortage.bytes, int64_t{54} << 20);
  EXPECT_EQ(plan.refused.at({"uid-1", DigestNumber(1)}).reason, api::reason::kDiskFull);
}

TEST(Plan, ShortageIsWhatAllRefusedFetchesLackTogether) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  for (const int bundle : {1, 2}) {
    node.history.bundles[{"uid-1", DigestNumber(bundle)}] = {
        .count = 1, .not_before = kNow + seconds(60), .lacking = {.bytes = 300, .inodes = 5}};
  }
  EXPECT_EQ(node.Make().shortage, (DiskAmount{.bytes = 600, .inodes = 10}));
  // 100 bytes are too many without any fetch; each fetch has counted them.
  node.disk = {.limit_bytes = 1000, .used_bytes = 1100};
  EXPECT_EQ(node.Make().shortage, (DiskAmount{.bytes = 500, .inodes = 10}));
}

TEST(Plan, SumOfFetchesObeysByteLimit) {
  api::WantedWarmup first = Warmup({Bundle(1, 600)});
  api::WantedWarmup second = Warmup({Bundle(2, 600)});
  second.uid = "uid-2";
  Node node;
  node.Want(first).Want(second);
  node.Linked(MountOf(first), ColdId(MountOf(first), 0));
  node.Linked(MountOf(second), ColdId(MountOf(second), 0));
  node.disk = {.limit_bytes = 1000};
  const Plan plan = node.Make();
  EXPECT_EQ(plan.steps.size(), 1U);
  EXPECT_TRUE(plan.refused.contains({"uid-2", DigestNumber(2)}));
}

TEST(Plan, RejectsUnsafeNames) {
  api::WantedWarmup unsafe = Warmup({Bundle(1)});
  unsafe.ns = "../../etc";
  const Plan plan = Node().Want(unsafe).Make();
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_NE(plan.invalid.at("uid-1").find("namespace"), std::string::npos);
}

TEST(Plan, OrdersStepsByKind) {
  const api::WantedWarmup ready = Warmup({Bundle(1)});
  api::WantedWarmup fresh = Warmup({Bundle(2)});
  fresh.uid = "uid-2";
  Node node;
  node.Want(fresh).Want(ready).Linked(MountOf(ready), ColdId(MountOf(ready), 0));
  const std::string id = GenerationId(MountOf(ready), {DigestNumber(1)});
  node.inventory.generations[id];
  node.inventory.staging = {"left"};
  const Texts steps = node.Steps();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_TRUE(steps[0].starts_with("prepare"));
  EXPECT_TRUE(steps[1].starts_with("activate"));
  EXPECT_TRUE(steps[2].starts_with("discard"));
  EXPECT_TRUE(steps[3].starts_with("fetch"));
}

TEST(EligibleBundles, DropsEmptyAndDuplicateDigestsInOrder) {
  api::WantedWarmup warmup = Warmup({Bundle(3), Bundle(1), Bundle(3)});
  warmup.bundles.push_back({.key = "none"});
  const auto eligible = EligibleBundles(warmup, {}, kNow);
  EXPECT_EQ(DigestsOf(eligible), (std::vector<Digest>{DigestNumber(3), DigestNumber(1)}));
}

TEST(Plan, IsDeterministic) {
  const api::WantedWarmup warmup = Warmup({Bundle(1), Bundle(2)});
  Node node;
  node.Want(warmup);
  node.inventory.staging = {"x", "y"};
  EXPECT_EQ(node.Steps(), node.Steps());
}

}  // namespace
}  // namespace cachewarm::agent
