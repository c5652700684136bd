// SPDX-License-Identifier: Apache-2.0
#include "cli/status/progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::status {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WallTime kNow{std::chrono::hours(500'000)};
const std::string kH100 = "nvidia/h100-80gb-hbm3/sm_90";
const std::string kCpu = "x86-64-v4/amd-25-17/5c0d9f21";

Digest DigestNamed(char letter) {
  return *Digest::Parse("sha256:" + std::string(64, letter));
}

// A warmup with one published bundle of 100 MB for the H100.
api::CacheWarmup Warmup() {
  api::CacheWarmup warmup;
  warmup.ns = "team";
  warmup.name = "llama";
  warmup.uid = "w1";
  warmup.status.bundles = {{.key = "k",
                            .gpu_type = kH100,
                            .cpu_class = kCpu,
                            .image = "i",
                            .digest = DigestNamed('a'),
                            .bytes = 100'000'000,
                            .nodes_desired = 1}};
  return warmup;
}

// A node of the H100 with an entry of the warmup that has no bundle; reported 5 seconds ago.
api::NodeCache NodeNamed(const std::string& name) {
  api::NodeCache node;
  node.name = name;
  node.spec.warmups = {{.uid = "w1", .ns = "team", .name = "llama"}};
  node.status.node.gpu_type = kH100;
  node.status.node.cpu_class = kCpu;
  node.status.heartbeat = kNow - seconds(5);
  return node;
}

void Want(api::NodeCache& node) {
  node.spec.warmups[0].bundles = {{.key = "k", .digest = DigestNamed('a'), .bytes = 100'000'000}};
}

void Report(api::NodeCache& node, api::BundleState state, int64_t bytes, double taken) {
  node.status.warmups = {{.uid = "w1",
                          .prepared = {"image"},
                          .generation = "g",
                          .bundles = {{.digest = DigestNamed('a'),
                                       .state = state,
                                       .bytes_done = bytes,
                                       .fetch_seconds = taken}}}};
}

BundleProgress OnlyRow(const api::CacheWarmup& warmup, const std::vector<api::NodeCache>& nodes) {
  const std::vector<BundleProgress> rows = ProgressOf(warmup, nodes, kNow);
  EXPECT_EQ(rows.size(), 1U);
  return rows.empty() ? BundleProgress() : rows.front();
}

TEST(ProgressOfNodes, RunningFetchHasItsRateAndTheTimeLeft) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  Report(node, api::BundleState::kFetching, 40'000'000, 2);
  const BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.state, State::kFetching);
  EXPECT_EQ(row.bytes_done, 40'000'000);
  EXPECT_EQ(row.bytes_total, 100'000'000);
  EXPECT_EQ(row.bytes_per_second, 20'000'000);
  EXPECT_EQ(row.left, Duration(seconds(3)));
  EXPECT_EQ(row.bundle, DigestNamed('a'));
}

TEST(ProgressOfNodes, FetchWithoutBytesHasNoRate) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  Report(node, api::BundleState::kFetching, 0, 2);
  const BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.bytes_per_second, 0);
  EXPECT_FALSE(row.left.has_value());
}

TEST(ProgressOfNodes, ActiveBundleHasNoRate) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  Report(node, api::BundleState::kActive, 100'000'000, 2);
  const BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.state, State::kActive);
  EXPECT_EQ(row.bytes_per_second, 0);
  EXPECT_EQ(row.message, "");
}

TEST(ProgressOfNodes, FailedBundleHasReasonAndMessage) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  Report(node, api::BundleState::kFailed, 0, 0);
  node.status.warmups[0].bundles[0].reason = "StoreError";
  node.status.warmups[0].bundles[0].message = "connection refused";
  const BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.state, State::kFailed);
  EXPECT_EQ(row.message, "StoreError: connection refused");
}

TEST(ProgressOfNodes, BundleThatTheAgentHasNotReportedIsWaiting) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  const BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.state, State::kWaiting);
  EXPECT_THAT(row.message, HasSubstr("has not reported this bundle"));
}

TEST(ProgressOfNodes, BundleWithoutASlotIsWaitingOnNodesThatItFits) {
  const api::NodeCache node = NodeNamed("a");
  BundleProgress row = OnlyRow(Warmup(), {node});
  EXPECT_EQ(row.state, State::kWaiting);
  EXPECT_EQ(row.message, "waits for a fetch slot");

  api::NodeCache other_cpu = node;
  other_cpu.status.node.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  EXPECT_EQ(OnlyRow(Warmup(), {other_cpu}).state, State::kNoBundle);
  api::CacheWarmup portable = Warmup();
  portable.status.bundles[0].native = false;
  EXPECT_EQ(OnlyRow(portable, {other_cpu}).state, State::kWaiting);
  api::CacheWarmup unused = Warmup();
  unused.status.bundles[0].nodes_desired = 0;  // of an older image
  EXPECT_EQ(OnlyRow(unused, {node}).state, State::kNoBundle);
}

TEST(ProgressOfNodes, NodesOfOtherWarmupsAreLeftOut) {
  api::NodeCache node = NodeNamed("a");
  node.spec.warmups[0].uid = "w2";
  EXPECT_THAT(ProgressOf(Warmup(), {node}, kNow), IsEmpty());
}

TEST(ProgressOfNodes, OldReportIsMarkedAndItsRateIsNotShown) {
  api::NodeCache node = NodeNamed("a");
  Want(node);
  Report(node, api::BundleState::kFetching, 40'000'000, 2);
  node.status.heartbeat = kNow - seconds(31);
  const BundleProgress old_fetch = OnlyRow(Warmup(), {node});
  EXPECT_EQ(old_fetch.message, "the agent reported last 31s ago");
  EXPECT_EQ(old_fetch.bytes_per_second, 0);
  EXPECT_FALSE(old_fetch.left.has_value());

  Report(node, api::BundleState::kActive, 100'000'000, 2);
  EXPECT_EQ(OnlyRow(Warmup(), {node}).message, "");
  node.status.heartbeat = kNow - minutes(12);
  EXPECT_THAT(OnlyRow(Warmup(), {node}).message, HasSubstr("reported last 12m"));
  node.status.heartbeat = {};
  EXPECT_THAT(OnlyRow(Warmup(), {node}).message, HasSubstr("has never reported"));
}

// A build of the pod p1 on node "a" that was elected a minute ago.
api::CacheWarmup Building() {
  api::CacheWarmup warmup = Warmup();
  warmup.status.bundles.clear();
  warmup.status.starts.cold_median_seconds = 100;
  warmup.status.builders = {{.key = "k",
                             .gpu_type = kH100,
                             .cpu_class = kCpu,
                             .image = "i",
                             .pod_uid = "p1",
                             .pod_name = "llama-0",
                             .node = "a",
                             .elected_time = kNow - minutes(1)}};
  return warmup;
}

// A node whose operator requested the capture of p1, which started 40 seconds ago.
api::NodeCache Capturing() {
  api::NodeCache node = NodeNamed("a");
  node.spec.warmups.clear();
  node.spec.captures = {{.id = "p1",
                         .warmup_uid = "w1",
                         .pod_uid = "p1",
                         .key = "k",
                         .started_time = kNow - seconds(40)}};
  return node;
}

TEST(ProgressOfBuilds, CompileHasItsTimeAndTheTimeLeftToTheMedian) {
  const BundleProgress row = OnlyRow(Building(), {Capturing()});
  EXPECT_EQ(row.state, State::kCompiling);
  EXPECT_EQ(row.pod, "llama-0");
  EXPECT_EQ(row.taken, Duration(seconds(40)));
  EXPECT_EQ(row.left, Duration(seconds(60)));
}

TEST(ProgressOfBuilds, TimeLeftIsUnknownWithoutAMedianAndNeverNegative) {
  api::CacheWarmup warmup = Building();
  warmup.status.starts.cold_median_seconds = 0;
  EXPECT_FALSE(OnlyRow(warmup, {Capturing()}).left.has_value());
  warmup.status.starts.cold_median_seconds = 30;
  EXPECT_EQ(OnlyRow(warmup, {Capturing()}).left, Duration(0));
}

TEST(ProgressOfBuilds, PhasesFollowTheCapture) {
  EXPECT_EQ(OnlyRow(Building(), {}).state, State::kStarting);
  EXPECT_EQ(OnlyRow(Building(), {}).taken, Duration(minutes(1)));
  api::NodeCache node = Capturing();
  node.spec.captures[0].ready_time = kNow - seconds(1);
  EXPECT_EQ(OnlyRow(Building(), {node}).state, State::kSettling);
  node.status.captures = {{.id = "p1", .state = api::CaptureState::kPacking, .bytes = 5}};
  EXPECT_EQ(OnlyRow(Building(), {node}).state, State::kPublishing);
  EXPECT_EQ(OnlyRow(Building(), {node}).bytes_total, 5);

  api::CacheWarmup warmup = Building();
  warmup.status.builders[0].state = api::BuilderState::kProving;
  EXPECT_EQ(OnlyRow(warmup, {node}).state, State::kProving);
  warmup.status.builders[0].state = api::BuilderState::kFailed;
  warmup.status.builders[0].reason = "CacheNotSettled";
  EXPECT_EQ(OnlyRow(warmup, {node}).state, State::kBuildFailed);
  EXPECT_EQ(OnlyRow(warmup, {node}).message, "CacheNotSettled");
  warmup.status.builders[0].state = api::BuilderState::kCaptured;
  EXPECT_THAT(ProgressOf(warmup, {node}, kNow), IsEmpty());
}

TEST(ProgressOf, IsSortedByGpuTypeWithBuildsFirst) {
  api::CacheWarmup warmup = Building();
  api::NodeCache other = NodeNamed("0");
  other.status.node.gpu_type = "nvidia/a100-80gb/sm_80";
  std::vector<std::string> order;
  for (const BundleProgress& row :
       ProgressOf(warmup, {NodeNamed("c"), Capturing(), NodeNamed("b"), other}, kNow)) {
    order.push_back(row.node + " " + std::string(Name(row.state)));
  }
  EXPECT_THAT(order, ElementsAre("0 NoBundle", "a Compiling", "b NoBundle", "c NoBundle"));
}

TEST(NameOfState, OfEveryState) {
  EXPECT_EQ(Name(State::kStarting), "Starting");
  EXPECT_EQ(Name(State::kBuildFailed), "BuildFailed");
  EXPECT_EQ(Name(State::kFailed), "Failed");
}

}  // namespace
}  // namespace cachewarm::status
