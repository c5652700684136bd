// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const MonoTime kNow{seconds(1000)};

Digest DigestNumber(int number) {
  return DigestOf(std::to_string(number));
}

// One warmup with one run-as on a good disk; tests change what they are about.
struct World {
  api::NodeCacheSpec desired{
      .warmups = {{.uid = "uid-1",
                   .ns = "team",
                   .name = "llama",
                   .run_as = {"u1000"},
                   .bundles = {{.key = "k1", .digest = DigestNumber(1), .bytes = 100}}}}};
  Inventory inventory;
  History history;
  Plan plan;
  std::map<Digest, FetchProgress> progress;
  std::map<Mount, std::string> mount_problems;
  api::RootStatus root{.path = "/r", .writable = true, .executable = true};

  Mount mount(const std::string& run_as = "u1000") const {
    return {"team", "llama", "uid-1", run_as};
  }
  std::string Id(const std::vector<Digest>& digests) const {
    return GenerationId(mount(), digests);
  }
  void Link(const std::string& id, const std::vector<Digest>& digests = {}) {
    inventory.links[mount()] = {LinkState::kActive, id};
    inventory.generations[id].digests = digests;
  }
  api::NodeWarmup Report() const {
    return ReportWarmups({.desired = desired,
                          .inventory = inventory,
                          .history = history,
                          .plan = plan,
                          .progress = progress,
                          .mount_problems = mount_problems,
                          .root = root})
        .at(0);
  }
};

TEST(ReportWarmups, SaysWaitingWhileNothingHappened) {
  const World world;
  const api::NodeWarmup report = world.Report();
  EXPECT_EQ(report.uid, "uid-1");
  EXPECT_TRUE(report.prepared.empty());
  EXPECT_EQ(report.generation, "");
  ASSERT_EQ(report.bundles.size(), 1U);
  EXPECT_EQ(report.bundles[0].state, api::BundleState::kWaiting);
}

TEST(ReportWarmups, AColdDirectoryIsPreparedAndNotActive) {
  World world;
  world.Link(ColdId(world.mount(), 0));
  const api::NodeWarmup report = world.Report();
  EXPECT_EQ(report.prepared, std::vector<std::string>{"u1000"});
  EXPECT_EQ(report.generation, ColdId(world.mount(), 0));
  EXPECT_EQ(report.bundles[0].state, api::BundleState::kWaiting);
}

TEST(ReportWarmups, PreparesNothingOnADiskThatPodsCannotUse) {
  struct Case {
    bool writable;
    bool executable;
  };
  for (const Case& each : {Case{false, true}, Case{true, false}, Case{false, false}}) {
    World world;
    world.Link(ColdId(world.mount(), 0));
    world.root.writable = each.writable;
    world.root.executable = each.executable;
    world.root.message = "the disk is mounted noexec";
    EXPECT_TRUE(world.Report().prepared.empty());
    EXPECT_EQ(world.Report().message, "the disk is mounted noexec");
  }
}

TEST(ReportWarmups, ADirectoryThatIsNotOurLinkIsNotPrepared) {
  for (const LinkState state : {LinkState::kUnusable, LinkState::kDirectory, LinkState::kBroken}) {
    World world;
    world.inventory.links[world.mount()] = {state, ""};
    EXPECT_TRUE(world.Report().prepared.empty()) << static_cast<int>(state);
  }
}

TEST(ReportWarmups, ReportsActiveWithWhatItTook) {
  World world;
  world.Link(world.Id({DigestNumber(1)}), {DigestNumber(1)});
  world.inventory.generations[world.Id({DigestNumber(1)})].fetch_seconds = 2.5;
  const api::NodeBundle bundle = world.Report().bundles[0];
  EXPECT_EQ(bundle.state, api::BundleState::kActive);
  EXPECT_EQ(bundle.bytes_done, 100);
  EXPECT_EQ(bundle.fetch_seconds, 2.5);
  EXPECT_EQ(bundle.reason, api::reason::kActive);
}

TEST(ReportWarmups, KnowsAnActiveTreeByItsNameWhenTheRecordIsLost) {
  World world;
  world.Link(world.Id({DigestNumber(1)}));
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, ABundleOfAnOlderUnionIsStillActive) {
  World world;
  world.Link(world.Id({DigestNumber(1), DigestNumber(2)}), {DigestNumber(1), DigestNumber(2)});
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, IsActiveOnlyWhereEveryRunAsHasIt) {
  World world;
  world.desired.warmups[0].run_as = {"u1000", "image"};
  world.Link(world.Id({DigestNumber(1)}), {DigestNumber(1)});
  world.inventory.links[world.mount("image")] = {LinkState::kActive,
                                                 ColdId(world.mount("image"), 0)};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kWaiting);
  EXPECT_EQ(world.Report().prepared, (std::vector<std::string>{"u1000", "image"}));
}

TEST(ReportWarmups, ShowsTheProgressOfAFetch) {
  World world;
  world.history.fetching = {world.Id({DigestNumber(1)})};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kFetching);
  world.progress[DigestNumber(1)] = {.bytes = 40, .seconds = 2.5};
  EXPECT_EQ(world.Report().bundles[0].bytes_done, 40);
  EXPECT_EQ(world.Report().bundles[0].fetch_seconds, 2.5);
}

TEST(ReportWarmups, BytesAreReportedInTwentieths) {
  EXPECT_EQ(ReportedBytes(0, 1000), 0);
  EXPECT_EQ(ReportedBytes(49, 1000), 0);
  EXPECT_EQ(ReportedBytes(50, 1000), 50);
  EXPECT_EQ(ReportedBytes(999, 1000), 950);
  EXPECT_EQ(ReportedBytes(7, 7), 7);
  EXPECT_EQ(ReportedBytes(7, 0), 7);
}

TEST(ReportWarmups, FailuresCarryReasonAndMessageWhereverTheyAreFrom) {
  const Setback setback{.failures = 1,
                        .not_before = kNow,
                        .reason = std::string(api::reason::kFetchFailed),
                        .message = "the registry answers 503"};
  const std::vector<std::function<void(World&)>> sources = {
      [&](World& world) {
        world.history.bundles[{"uid-1", DigestNumber(1)}] = setback;
      },
      [&](World& world) { world.history.generations[world.Id({DigestNumber(1)})] = setback; },
      [&](World& world) {
        world.plan.refused[{"uid-1", DigestNumber(1)}] = setback;
      },
  };
  for (const auto& source : sources) {
    World world;
    source(world);
    const api::NodeBundle bundle = world.Report().bundles[0];
    EXPECT_EQ(bundle.state, api::BundleState::kFailed);
    EXPECT_EQ(bundle.reason, api::reason::kFetchFailed);
    EXPECT_EQ(bundle.message, "the registry answers 503");
  }
}

TEST(ReportWarmups, ADamagedTreeIsNotActive) {
  World world;
  world.Link(world.Id({DigestNumber(1)}), {DigestNumber(1)});
  world.inventory.damaged[world.Id({DigestNumber(1)})] = {};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kWaiting);
  world.history.fetching = {GenerationId(world.mount(), {DigestNumber(1)}, 0, 1)};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kFetching);
  world.plan.refused[{"uid-1", DigestNumber(1)}] = {
      .reason = std::string(api::reason::kTreeDamaged), .message = "three in a row"};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kFailed);
  EXPECT_EQ(world.Report().bundles[0].reason, api::reason::kTreeDamaged);
}

TEST(ReportWarmups, SaysThatATreeStandsForADamagedOne) {
  World world;
  const std::string second = GenerationId(world.mount(), {DigestNumber(1)}, 0, 1);
  world.Link(second, {DigestNumber(1)});
  const std::string first = world.Id({DigestNumber(1)});
  world.inventory.generations[first].digests = {DigestNumber(1)};
  world.inventory.damaged[first] = {.at = WallTime(seconds(1'700'000'000)),
                                    .path = "inductor/x.so",
                                    .message = "its content changed"};
  const api::NodeBundle bundle = world.Report().bundles[0];
  EXPECT_EQ(bundle.state, api::BundleState::kActive);
  EXPECT_EQ(bundle.reason, api::reason::kActive);
  EXPECT_EQ(bundle.message,
            "stands for 1 damaged trees, the last one found 2023-11-14T22:13:20Z: inductor/x.so: "
            "its content changed");
}

TEST(ReportWarmups, WhatIsActiveIsNotFailedByALaterSetback) {
  World world;
  world.Link(world.Id({DigestNumber(1)}), {DigestNumber(1)});
  world.history.bundles[{"uid-1", DigestNumber(1)}] = {.failures = 1};
  EXPECT_EQ(world.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, SaysWhyADirectoryCouldNotBePrepared) {
  World world;
  world.mount_problems[world.mount()] = "no space left";
  EXPECT_EQ(world.Report().message, "no space left");
  world.plan.invalid["uid-1"] = "warmup namespace is wrong";
  EXPECT_EQ(world.Report().message, "warmup namespace is wrong");
}

TEST(IsNews, LooksAtEverythingButTheHeartbeatAndSmallMovesOfTheDisk) {
  api::NodeCacheStatus before;
  before.node.root.used_bytes = 1'000'000;
  before.node.root.free_bytes = 100'000'000;
  before.heartbeat = WallTime(seconds(1));
  struct Case {
    std::string what;
    std::function<void(api::NodeCacheStatus&)> change;
    bool is_news;
  };
  const std::vector<Case> cases = {
      {"nothing", [](auto&) {}, false},
      {"heartbeat", [](auto& s) { s.heartbeat = WallTime(seconds(2)); }, false},
      {"used a little", [](auto& s) { s.node.root.used_bytes += 10'000; }, false},
      {"used a lot", [](auto& s) { s.node.root.used_bytes += 100'000; }, true},
      {"free a little", [](auto& s) { s.node.root.free_bytes -= 1'000'000; }, false},
      {"free a lot", [](auto& s) { s.node.root.free_bytes /= 2; }, true},
      {"driver", [](auto& s) { s.node.driver = "570"; }, true},
      {"message", [](auto& s) { s.node.root.message = "full"; }, true},
      {"warmup", [](auto& s) { s.warmups.push_back({.uid = "u"}); }, true},
      {"capture", [](auto& s) { s.captures.push_back({.id = "c"}); }, true},
      {"start", [](auto& s) { s.starts.push_back({.pod_uid = "p"}); }, true},
  };
  for (const Case& each : cases) {
    api::NodeCacheStatus after = before;
    each.change(after);
    EXPECT_EQ(IsNews(before, after), each.is_news) << each.what;
  }
}

}  // namespace
}  // namespace cachewarm::agent
