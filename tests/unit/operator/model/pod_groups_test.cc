// SPDX-License-Identifier: Apache-2.0
#include "operator/model/pod_groups.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::model {
namespace {

using fakes::ReleaseOf;
using fakes::SnapshotBuilder;
using Texts = std::map<std::string, std::string>;

api::Pod PodOf(const Texts& labels, const Texts& annotations = {}) {
  api::Pod pod;
  pod.meta.labels = labels;
  pod.meta.annotations = annotations;
  return pod;
}

struct GroupCase {
  const char* name;
  Texts labels;
  Texts annotations;
  const char* group;
  bool unknown = false;
};

class Groups : public testing::TestWithParam<GroupCase> {};

TEST_P(Groups, RecognizedByLabelsAndAnnotations) {
  const api::Pod pod = PodOf(GetParam().labels, GetParam().annotations);
  EXPECT_EQ(GroupOf(pod), GetParam().group);
  EXPECT_EQ(IsOfUnknownGang(pod), GetParam().unknown);
}

INSTANTIATE_TEST_SUITE_P(
    All, Groups,
    testing::Values(
        GroupCase{"none", {{"app", "llama"}}, {}, ""},
        GroupCase{"leader_worker_set",
                  {{"leaderworkerset.sigs.k8s.io/name", "l"},
                   {"leaderworkerset.sigs.k8s.io/group-index", "2"}},
                  {},
                  "leaderworkerset.sigs.k8s.io/name=l/2"},
        GroupCase{"job_set",
                  {{"jobset.sigs.k8s.io/jobset-name", "j"}},
                  {},
                  "jobset.sigs.k8s.io/jobset-name=j"},
        GroupCase{"pod_group",
                  {{"scheduling.x-k8s.io/pod-group", "g"}},
                  {},
                  "scheduling.x-k8s.io/pod-group=g"},
        GroupCase{"volcano",
                  {},
                  {{"scheduling.k8s.io/group-name", "g"}},
                  "scheduling.k8s.io/group-name=g"},
        GroupCase{"kai", {}, {{"pod-group-name", "g"}}, "pod-group-name=g"},
        GroupCase{"ray", {{"ray.io/cluster", "r"}}, {}, "ray.io/cluster=r"},
        GroupCase{"kueue",
                  {{"kueue.x-k8s.io/pod-group-name", "g"}},
                  {{"kueue.x-k8s.io/pod-group-total-count", "4"}},
                  "kueue.x-k8s.io/pod-group-name=g"},
        GroupCase{"koordinator", {{"gang.scheduling.koordinator.sh/name", "g"}}, {}, "", true},
        GroupCase{"grove", {{"grove.io/podgang", "g"}}, {}, "", true},
        GroupCase{"somebody", {}, {{"example.org/pod-group", "g"}}, "", true}),
    [](const auto& each) { return each.param.name; });

TEST(UnknownGangs, RecognizedInSpec) {
  api::Pod pod;
  pod.object = std::make_shared<const codec::Json>(
      codec::Json{{"spec", {{"workloadRef", {{"name", "w"}, {"podGroup", "g"}}}}}});
  EXPECT_TRUE(IsOfUnknownGang(pod));
}

class GroupGates : public testing::Test {
 protected:
  GroupGates() {
    builder_.Node({.name = "n1"}).Node({.name = "n2"}).Accepted();
    builder_.Bundle({.node = "n1"});
  }

  void Member(const std::string& name, const std::string& group, bool held = true) {
    builder_.Pod({.name = name,
                  .node = held ? "" : "n1",
                  .held = held,
                  .created = 98,
                  .labels = {{"scheduling.x-k8s.io/pod-group", group}}});
  }

  std::string ReasonFor(const std::string& pod) const {
    const Plan plan = builder_.Decide();
    const GateRelease* release = ReleaseOf(plan, pod);
    return release == nullptr ? "held" : release->reason;
  }

  SnapshotBuilder builder_;
};

TEST_F(GroupGates, GroupIsHeldWhileWorthWaiting) {
  Member("a", "g");
  Member("b", "g");
  EXPECT_EQ(ReasonFor("a"), "held");
  EXPECT_EQ(ReasonFor("b"), "held");
}

TEST_F(GroupGates, MemberWithoutCapacityReleasesGroup) {
  builder_.view("n1").free["pods"] = 1;
  builder_.view("n2").free["pods"] = 1;
  for (const char* name : {"a", "b", "c"}) {
    Member(name, "g");
  }
  EXPECT_EQ(ReasonFor("a"), "ReleasedWithGroup");
  EXPECT_EQ(ReasonFor("b"), "ReleasedWithGroup");
  EXPECT_EQ(ReasonFor("c"), "ReleasedNoCapacity");
}

TEST_F(GroupGates, ReleasedMemberReleasesGroup) {
  Member("a", "g");
  Member("b", "g", /*held=*/false);
  Member("other", "h");
  EXPECT_EQ(ReasonFor("a"), "ReleasedWithGroup");
  EXPECT_EQ(ReasonFor("other"), "held");
}

TEST_F(GroupGates, ReleasedMemberOfAnotherWarmupReleasesGroup) {
  Member("a", "g");
  Member("other", "h");
  builder_.in().groups_free_elsewhere = {"scheduling.x-k8s.io/pod-group=g"};
  EXPECT_EQ(ReasonFor("a"), "ReleasedWithGroup");
  EXPECT_EQ(ReasonFor("other"), "held");
}

}  // namespace
}  // namespace cachewarm::model
