// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/jobs_fixture.h"

namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

void ShareAClaim(SnapshotBuilder& builder) {
  builder.pod_template()["spec"]["volumes"] = {
      {{"name", "w"}, {"persistentVolumeClaim", {{"claimName", "w"}, {"readOnly", true}}}}};
}

struct RefusedCase {
  const char* name;
  void (*change)(SnapshotBuilder&);
  const char* words;
};

const RefusedCase kRefused[] = {
    {"no_room", [](SnapshotBuilder& b) { b.view("n1").free["pods"] = 0; },
     "has capacity for a builder Job"},
    {"cap", [](SnapshotBuilder& b) { b.in().builder_jobs_elsewhere = 8; }, "builders.jobsMax"},
    {"none", [](SnapshotBuilder& b) { b.in().settings.builder_jobs_max = 0; },
     "builders.jobsMax is 0"},
    {"host_network", [](SnapshotBuilder& b) { b.pod_template()["spec"]["hostNetwork"] = true; },
     "hostNetwork"},
    {"host_port",
     [](SnapshotBuilder& b) {
       b.pod_template()["spec"]["containers"][0]["ports"] = {{{"hostPort", 80}}};
     },
     "hostPort"},
    {"host_port_of_a_sidecar",
     [](SnapshotBuilder& b) {
       b.pod_template()["spec"]["initContainers"] = {
           {{"name", "proxy"}, {"restartPolicy", "Always"}, {"ports", {{{"hostPort", 81}}}}}};
     },
     "hostPort 81"},
    {"known_gang",
     [](SnapshotBuilder& b) {
       b.pod_template()["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train";
     },
     "scheduling.x-k8s.io/pod-group=train"},
    {"gang_by_annotation",
     [](SnapshotBuilder& b) {
       b.pod_template()["metadata"]["annotations"] = {{"scheduling.k8s.io/group-name", "train"}};
     },
     "scheduling.k8s.io/group-name=train"},
    {"unknown_gang",
     [](SnapshotBuilder& b) {
       b.pod_template()["metadata"]["labels"]["example.com/gang"] = "train";
     },
     "a gang"},
    {"gang_in_the_spec",
     [](SnapshotBuilder& b) {
       b.pod_template()["spec"]["schedulingGroup"] = {{"podGroupName", "train"}};
     },
     "a gang"},
    {"shared_claim_of_a_pod_that_has_not_started",
     [](SnapshotBuilder& b) {
       ShareAClaim(b);
       b.warmup().spec.compile.builder = api::Builder::kJob;
       b.Pod({.name = "p", .node = "n1", .created = 100});
     },
     "may wait for a PersistentVolumeClaim"},
    {"claim",
     [](SnapshotBuilder& b) {
       b.pod_template()["spec"]["volumes"] = {
           {{"name", "w"}, {"persistentVolumeClaim", {{"claimName", "w"}}}}};
     },
     "PersistentVolumeClaim that a copy of the pod could write to"},
    {"claim_template",
     [](SnapshotBuilder& b) {
       b.pod_template()["spec"]["containers"][0]["volumeMounts"] = {
           {{"name", "w"}, {"mountPath", "/w"}}};
     },
     "volumeClaimTemplates"},
};

class RefusedJob : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedJob, JobIsNotCreatedAndConditionSaysWhy) {
  SnapshotBuilder builder = ScaledDown();
  GetParam().change(builder);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.jobs_to_create.empty());
  EXPECT_TRUE(plan.status.builders.empty());
  EXPECT_NE(fakes::Condition(plan, "Warm")->message.find(GetParam().words), std::string::npos)
      << fakes::Condition(plan, "Warm")->message;
}

INSTANTIATE_TEST_SUITE_P(All, RefusedJob, testing::ValuesIn(kRefused),
                         [](const auto& each) { return each.param.name; });

TEST(RefusedJobs, ReadOnlyClaimMayBeCopied) {
  SnapshotBuilder builder = ScaledDown();
  ShareAClaim(builder);
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
}

TEST(RefusedJobs, ClusterCapCountsJobsOfThisPlan) {
  SnapshotBuilder builder = ScaledDown();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.in().builder_jobs_elsewhere = 7;
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
}

TEST(RefusedJobs, UnusableOverridesAreReported) {
  SnapshotBuilder builder = ScaledDown();
  builder.warmup().spec.compile.overrides = {
      .resources = {{.container = "server", .limits = {{"nvidia.com/gpu", "2"}}}}};
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.jobs_to_create.empty());
  const api::Condition* warm = fakes::Condition(plan, "Warm");
  ASSERT_NE(warm, nullptr);
  EXPECT_NE(warm->message.find("compile.overrides.resources: container \"server\""),
            std::string::npos)
      << warm->message;
}

TEST(RefusedJobs, NodeNeedsCapacityForOverriddenPod) {
  SnapshotBuilder builder = ScaledDown();
  builder.view("n1").free["cpu"] = 4000;
  builder.pod_template()["spec"]["containers"].push_back(
      {{"name", "driver"}, {"resources", {{"requests", {{"cpu", "1m"}}}}}});
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
  builder.warmup().spec.compile.overrides = {
      .resources = {{.container = "driver", .requests = {{"cpu", "5"}}}}};
  EXPECT_TRUE(builder.Decide().jobs_to_create.empty());
}

}  // namespace
}  // namespace cachewarm::plan
