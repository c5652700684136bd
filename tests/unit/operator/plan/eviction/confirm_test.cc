// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/eviction/confirm.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::plan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const WallTime kUnlinked{seconds(1'700'000'000)};
const WallTime kAfter = kUnlinked + api::kMountedBefore + milliseconds(1);
const api::EvictableTree kTree{
    .generation = "tree", .warmup_uid = "uid-1", .unlinked_time = kUnlinked};
const api::EvictableTree kUnowned{.generation = "tree", .unlinked_time = kUnlinked};
const api::EvictableTree kLinked{.generation = "tree", .warmup_uid = "uid-1"};

struct ConfirmCase {
  const char* name;
  api::EvictableTree tree;
  std::vector<MountingPod> pods;
  std::set<std::string> warmups;
  bool is_confirmed = false;
};

std::vector<ConfirmCase> Cases() {
  const auto pod = [](const char* uid, const char* node, WallTime started) {
    return MountingPod{.warmup_uid = uid, .node = node, .started_time = started};
  };
  return {
      {"no pod", kTree, {}, {"uid-1"}, true},
      {"a pod that started later", kTree, {pod("uid-1", "a", kAfter)}, {"uid-1"}, true},
      {"a pod that started before", kTree, {pod("uid-1", "a", kUnlinked)}, {"uid-1"}, false},
      {"a pod that started too soon after",
       kTree,
       {pod("uid-1", "a", kUnlinked + api::kMountedBefore)},
       {"uid-1"},
       false},
      {"a bound pod that has not started", kTree, {pod("uid-1", "a", {})}, {"uid-1"}, false},
      {"one of two pods started before",
       kTree,
       {pod("uid-1", "a", kAfter), pod("uid-1", "a", kUnlinked)},
       {"uid-1"},
       false},
      {"an unreadable pod of the node", kTree, {pod("", "a", {})}, {"uid-1"}, false},
      {"a pod of another node", kTree, {pod("uid-1", "b", kUnlinked)}, {"uid-1"}, true},
      {"a pod of another warmup", kTree, {pod("uid-2", "a", kUnlinked)}, {"uid-1"}, true},
      {"an unbound pod mounts the new tree", kTree, {pod("uid-1", "", {})}, {"uid-1"}, true},
      {"unknown owner, no pod", kUnowned, {}, {}, true},
      {"unknown owner, any pod that started before",
       kUnowned,
       {pod("uid-2", "a", kUnlinked)},
       {},
       false},
      {"unknown owner, a pod that started later", kUnowned, {pod("uid-2", "a", kAfter)}, {}, true},
      {"linked, warmup gone", kLinked, {}, {"uid-2"}, true},
      {"linked, warmup exists", kLinked, {}, {"uid-1"}, false},
      {"linked, warmup gone, a running pod", kLinked, {pod("uid-1", "a", kAfter)}, {}, false},
      {"linked, warmup gone, an unbound pod", kLinked, {pod("uid-1", "", {})}, {}, false},
      {"linked, warmup gone, a pod of another node",
       kLinked,
       {pod("uid-1", "b", kAfter)},
       {},
       true},
      {"linked, warmup gone, an unreadable pod", kLinked, {pod("", "", {})}, {}, false},
      {"linked, owner unknown", {.generation = "tree"}, {}, {}, false},
  };
}

TEST(ConfirmEvictions, NeverConfirmsATreeThatAPodMayHaveMounted) {
  for (const ConfirmCase& each : Cases()) {
    const auto confirmed = ConfirmEvictions(
        {.node = "a", .offered = {each.tree}, .pods = each.pods, .warmups = each.warmups});
    EXPECT_EQ(confirmed.size(), each.is_confirmed ? 1U : 0U) << each.name;
    if (each.is_confirmed && !confirmed.empty()) {
      EXPECT_EQ(confirmed[0], each.tree) << each.name;
    }
  }
}

TEST(ConfirmEvictions, SortsByGeneration) {
  api::EvictableTree other = kTree;
  other.generation = "a-tree";
  const auto confirmed =
      ConfirmEvictions({.node = "a", .offered = {kTree, other}, .pods = {}, .warmups = {}});
  ASSERT_EQ(confirmed.size(), 2U);
  EXPECT_EQ(confirmed[0].generation, "a-tree");
}

api::Pod PodWith(const std::string& path) {
  api::Pod pod;
  pod.node = "a";
  pod.phase = "Running";
  pod.containers = {{.name = "server", .started_time = kAfter},
                    {.name = "sidecar", .started_time = kUnlinked}};
  pod.object = std::make_shared<const codec::Json>(codec::Json{
      {"spec",
       {{"volumes",
         codec::Json::array({{{"name", "cachewarm"}, {"hostPath", {{"path", path}}}}})}}}});
  return pod;
}

TEST(MountingPodOf, ReadsWarmupNodeAndEarliestStart) {
  const api::Pod pod = PodWith("/var/lib/cachewarm/team/llama/uid-1/u1000");
  EXPECT_EQ(MountingPodOf(pod),
            (MountingPod{.warmup_uid = "uid-1", .node = "a", .started_time = kUnlinked}));
}

TEST(MountingPodOf, HasNoStartUntilAllContainersHaveStarted) {
  api::Pod pod = PodWith("/var/lib/cachewarm/team/llama/uid-1/u1000");
  pod.containers[0].started_time = {};
  EXPECT_EQ(MountingPodOf(pod)->started_time, WallTime{});
  pod.containers.clear();
  EXPECT_EQ(MountingPodOf(pod)->started_time, WallTime{}) << "kubelet has not reported yet";
}

TEST(MountingPodOf, SkipsPodsThatMountNothing) {
  api::Pod pod = PodWith("/var/lib/cachewarm/team/llama/uid-1/u1000");
  pod.phase = "Succeeded";
  EXPECT_EQ(MountingPodOf(pod), std::nullopt);
  api::Pod other = PodWith("/x");
  other.object = std::make_shared<const codec::Json>(codec::Json{{"spec", {}}});
  EXPECT_EQ(MountingPodOf(other), std::nullopt);
  EXPECT_EQ(MountingPodOf(PodWith("/short")), std::nullopt) << "the volume of no warmup";
}

}  // namespace
}  // namespace cachewarm::plan
