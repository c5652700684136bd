// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const MonoTime kNow{seconds(1000)};

Digest DigestNumber(int number) {
  return DigestOf(std::to_string(number));
}

// One warmup with one run-as on a usable disk; tests change single values.
struct Scenario {
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

TEST(ReportWarmups, BundleIsWaitingInitially) {
  const Scenario scenario;
  const api::NodeWarmup report = scenario.Report();
  EXPECT_EQ(report.uid, "uid-1");
  EXPECT_TRUE(report.prepared.empty());
  EXPECT_EQ(report.generation, "");
  ASSERT_EQ(report.bundles.size(), 1U);
  EXPECT_EQ(report.bundles[0].state, api::BundleState::kWaiting);
}

TEST(ReportWarmups, ColdDirectoryIsPreparedButNotActive) {
  Scenario scenario;
  scenario.Link(ColdId(scenario.mount(), 0));
  const api::NodeWarmup report = scenario.Report();
  EXPECT_EQ(report.prepared, std::vector<std::string>{"u1000"});
  EXPECT_EQ(report.generation, ColdId(scenario.mount(), 0));
  EXPECT_EQ(report.bundles[0].state, api::BundleState::kWaiting);
}

TEST(ReportWarmups, ReportsNothingPreparedOnUnusableDisk) {
  struct Case {
    bool writable;
    bool executable;
  };
  for (const Case& each : {Case{false, true}, Case{true, false}, Case{false, false}}) {
    Scenario scenario;
    scenario.Link(ColdId(scenario.mount(), 0));
    scenario.root.writable = each.writable;
    scenario.root.executable = each.executable;
    scenario.root.message = "the disk is mounted noexec";
    EXPECT_TRUE(scenario.Report().prepared.empty());
    EXPECT_EQ(scenario.Report().message, "the disk is mounted noexec");
  }
}

TEST(ReportWarmups, DirectoryWithoutUsableLinkIsNotPrepared) {
  for (const LinkState state : {LinkState::kUnusable, LinkState::kDirectory, LinkState::kBroken}) {
    Scenario scenario;
    scenario.inventory.links[scenario.mount()] = {state, ""};
    EXPECT_TRUE(scenario.Report().prepared.empty()) << static_cast<int>(state);
  }
}

TEST(ReportWarmups, ActiveBundleHasBytesAndSeconds) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(1)}), {DigestNumber(1)});
  scenario.inventory.generations[scenario.Id({DigestNumber(1)})].fetch_seconds = 2.5;
  const api::NodeBundle bundle = scenario.Report().bundles[0];
  EXPECT_EQ(bundle.state, api::BundleState::kActive);
  EXPECT_EQ(bundle.bytes_done, 100);
  EXPECT_EQ(bundle.fetch_seconds, 2.5);
  EXPECT_EQ(bundle.reason, api::reason::kActive);
}

TEST(ReportWarmups, RecognizesActiveTreeByNameWithoutRecord) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(1)}));
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, BundleOfOlderUnionIsActive) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(1), DigestNumber(2)}),
                {DigestNumber(1), DigestNumber(2)});
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, BundleOfTheActiveTreeIsReportedWhileALargerOneIsFetched) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(7)}), {DigestNumber(7)});
  const api::NodeWarmup report = scenario.Report();
  ASSERT_EQ(report.bundles.size(), 2U);
  EXPECT_EQ(report.bundles[0].state, api::BundleState::kWaiting);
  EXPECT_EQ(report.bundles[1].digest, DigestNumber(7));
  EXPECT_EQ(report.bundles[1].state, api::BundleState::kActive);
  scenario.inventory.damaged[scenario.Id({DigestNumber(7)})] = {};
  EXPECT_EQ(scenario.Report().bundles.size(), 1U) << "a damaged tree has none";
}

TEST(ReportWarmups, BundleIsActiveOnlyIfEveryRunAsHasIt) {
  Scenario scenario;
  scenario.desired.warmups[0].run_as = {"u1000", "image"};
  scenario.Link(scenario.Id({DigestNumber(1)}), {DigestNumber(1)});
  scenario.inventory.links[scenario.mount("image")] = {LinkState::kActive,
                                                       ColdId(scenario.mount("image"), 0)};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kWaiting);
  EXPECT_EQ(scenario.Report().prepared, (std::vector<std::string>{"u1000", "image"}));
}

TEST(ReportWarmups, ReportsFetchProgress) {
  Scenario scenario;
  scenario.history.fetching = {scenario.Id({DigestNumber(1)})};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kFetching);
  scenario.progress[DigestNumber(1)] = {.bytes = 40, .seconds = 2.5};
  EXPECT_EQ(scenario.Report().bundles[0].bytes_done, 40);
  EXPECT_EQ(scenario.Report().bundles[0].fetch_seconds, 2.5);
}

TEST(ReportWarmups, RoundsBytesToTwentieths) {
  EXPECT_EQ(ReportedBytes(0, 1000), 0);
  EXPECT_EQ(ReportedBytes(49, 1000), 0);
  EXPECT_EQ(ReportedBytes(50, 1000), 50);
  EXPECT_EQ(ReportedBytes(999, 1000), 950);
  EXPECT_EQ(ReportedBytes(7, 7), 7);
  EXPECT_EQ(ReportedBytes(7, 0), 7);
}

TEST(ReportWarmups, FailureFromAnySourceHasReasonAndMessage) {
  const FailureState failure{.count = 1,
                             .not_before = kNow,
                             .reason = std::string(api::reason::kFetchFailed),
                             .message = "the registry answers 503"};
  const std::vector<std::function<void(Scenario&)>> sources = {
      [&](Scenario& scenario) {
        scenario.history.bundles[{"uid-1", DigestNumber(1)}] = failure;
      },
      [&](Scenario& scenario) {
        scenario.history.generations[scenario.Id({DigestNumber(1)})] = failure;
      },
      [&](Scenario& scenario) {
        scenario.plan.refused[{"uid-1", DigestNumber(1)}] = failure;
      },
  };
  for (const auto& source : sources) {
    Scenario scenario;
    source(scenario);
    const api::NodeBundle bundle = scenario.Report().bundles[0];
    EXPECT_EQ(bundle.state, api::BundleState::kFailed);
    EXPECT_EQ(bundle.reason, api::reason::kFetchFailed);
    EXPECT_EQ(bundle.message, "the registry answers 503");
  }
}

TEST(ReportWarmups, DamagedTreeIsNotActive) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(1)}), {DigestNumber(1)});
  scenario.inventory.damaged[scenario.Id({DigestNumber(1)})] = {};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kWaiting);
  scenario.history.fetching = {GenerationId(scenario.mount(), {DigestNumber(1)}, 0, 1)};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kFetching);
  scenario.plan.refused[{"uid-1", DigestNumber(1)}] = {
      .reason = std::string(api::reason::kTreeDamaged), .message = "three in a row"};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kFailed);
  EXPECT_EQ(scenario.Report().bundles[0].reason, api::reason::kTreeDamaged);
}

TEST(ReportWarmups, ActiveBundleReportsReplacedDamagedTree) {
  Scenario scenario;
  const std::string second = GenerationId(scenario.mount(), {DigestNumber(1)}, 0, 1);
  scenario.Link(second, {DigestNumber(1)});
  const std::string first = scenario.Id({DigestNumber(1)});
  scenario.inventory.generations[first].digests = {DigestNumber(1)};
  scenario.inventory.damaged[first] = {.at = WallTime(seconds(1'700'000'000)),
                                       .path = "inductor/x.so",
                                       .message = "its content changed"};
  const api::NodeBundle bundle = scenario.Report().bundles[0];
  EXPECT_EQ(bundle.state, api::BundleState::kActive);
  EXPECT_EQ(bundle.reason, api::reason::kActive);
  EXPECT_EQ(
      bundle.message,
      "replaces 1 damaged tree (last detected 2023-11-14T22:13:20Z: inductor/x.so: its content "
      "changed)");
}

TEST(ReportWarmups, ActiveBundleStaysActiveAfterFailure) {
  Scenario scenario;
  scenario.Link(scenario.Id({DigestNumber(1)}), {DigestNumber(1)});
  scenario.history.bundles[{"uid-1", DigestNumber(1)}] = {.count = 1};
  EXPECT_EQ(scenario.Report().bundles[0].state, api::BundleState::kActive);
}

TEST(ReportWarmups, ReportsWhyDirectoryIsNotPrepared) {
  Scenario scenario;
  scenario.mount_problems[scenario.mount()] = "no space left";
  EXPECT_EQ(scenario.Report().message, "no space left");
  scenario.plan.invalid["uid-1"] = "warmup namespace is wrong";
  EXPECT_EQ(scenario.Report().message, "warmup namespace is wrong");
}

TEST(HasStatusChanged, IgnoresHeartbeatAndSmallDiskChanges) {
  api::NodeCacheStatus before;
  before.node.root.used_bytes = 1'000'000;
  before.node.root.free_bytes = 100'000'000;
  before.heartbeat = WallTime(seconds(1));
  struct Case {
    std::string what;
    std::function<void(api::NodeCacheStatus&)> change;
    bool has_changed;
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
    EXPECT_EQ(HasStatusChanged(before, after), each.has_changed) << each.what;
  }
}

}  // namespace
}  // namespace cachewarm::agent
