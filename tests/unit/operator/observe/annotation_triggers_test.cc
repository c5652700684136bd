// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/annotation_triggers.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/codec/json_value.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using op::testing::DeploymentObject;
using op::testing::Eventually;
using op::testing::NamespaceObject;
using op::testing::OptedInNamespaceObject;
using op::testing::OwnedBy;
using op::testing::PodObject;
using op::testing::WarmupObject;
using Keys = std::set<std::string>;

class AnnotationTriggersTest : public op::testing::ClusterCacheFixture {
 protected:
  AnnotationTriggersTest() : queue(queue_clock), triggers(cluster, queue) {
    triggers.Attach();
    server.Put(kube::kNamespaces, NamespaceObject("default"));
    server.Put(kube::kDeployments, DeploymentObject("llama"));
    Json rollout = DeploymentObject("canary");
    rollout["apiVersion"] = "argoproj.io/v1alpha1";
    rollout["kind"] = "Rollout";
    server.Put(kube::kRollouts, rollout);
  }
  ~AnnotationTriggersTest() override { StopCache(); }

  Keys Drain() {
    Keys keys;
    while (queue.size() > 0 || queue.delayed() > 0) {
      queue_clock.Advance(std::chrono::seconds(1));
      const auto key = queue.Get({});
      keys.insert(*key);
      queue.Done(*key);
    }
    return keys;
  }

  void Settle() {
    StartCache();
    ASSERT_EQ(Drain(), (Keys{"Deployment/default/llama", "Rollout/default/canary"}));
  }

  // Returns the keys up to and including `last`. Keys queued together have the order of
  // api::kWorkloadKinds.
  Keys Until(const std::string& last) {
    Keys keys;
    EXPECT_TRUE(Eventually([&] {
      keys.merge(Drain());
      return keys.contains(last);
    }));
    return keys;
  }

  fakes::FakeClock queue_clock;
  kube::WorkQueue queue;
  AnnotationTriggers triggers;
};

TEST_F(AnnotationTriggersTest, AnnotationQueuesWorkloadAndStatusDoesNot) {
  Settle();
  Json moved = DeploymentObject("llama");
  moved["status"]["replicas"] = 1;
  server.Put(kube::kDeployments, moved);
  server.Edit(kube::kRollouts, {.ns = "default", .name = "canary"}, [](Json& rollout) {
    rollout["metadata"]["annotations"]["cachewarm.io/warm"] = "true";
  });
  EXPECT_EQ(Until("Rollout/default/canary"), Keys{"Rollout/default/canary"});
}

TEST_F(AnnotationTriggersTest, NamespaceLabelQueuesAllItsWorkloads) {
  Settle();
  server.Edit(kube::kNamespaces, {.name = "default"},
              [](Json& ns) { ns["metadata"]["labels"]["cachewarm.io/warm"] = "true"; });
  EXPECT_TRUE(Until("Rollout/default/canary").contains("Deployment/default/llama"));
}

TEST_F(AnnotationTriggersTest, ChangedOrDeletedWarmupQueuesItsOwner) {
  Settle();
  Json warmup = WarmupObject("llama");
  warmup["metadata"]["ownerReferences"] = OwnedBy("apps/v1", "Deployment", "llama");
  server.Put(kube::kCacheWarmups, warmup);
  EXPECT_EQ(Until("Deployment/default/llama"), Keys{"Deployment/default/llama"});
  const kube::ObjectName name{.ns = "default", .name = "llama"};
  server.Edit(kube::kCacheWarmups, name, [](Json& each) { each["spec"]["paused"] = true; });
  EXPECT_EQ(Until("Deployment/default/llama"), Keys{"Deployment/default/llama"});
  server.Remove(kube::kCacheWarmups, name);
  EXPECT_TRUE(Until("Rollout/default/canary").contains("Deployment/default/llama"))
      << "the name is free for another workload";
}

// The CacheWarmup of a Job that does not exist.
Json RetainedObject(const std::string& name) {
  Json warmup = WarmupObject(name);
  warmup["metadata"]["ownerReferences"] = OwnedBy("v1", "Namespace", "default");
  warmup["metadata"]["annotations"]["cachewarm.io/expires-at"] = "2026-01-01T00:00:00Z";
  warmup["spec"] = {{"workloadRef", {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", name}}}};
  return warmup;
}

TEST_F(AnnotationTriggersTest, DeletedJobIsQueued) {
  server.Put(kube::kJobs, op::testing::FromYaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, uid: j}
spec: {template: {spec: {containers: []}}}
)"));
  StartCache();
  Drain();
  server.Remove(kube::kJobs, {.ns = "default", .name = "train"});
  EXPECT_EQ(Until("Job/default/train"), Keys{"Job/default/train"});
}

TEST_F(AnnotationTriggersTest, NewExpiryQueuesAllRetainedWarmupsOfTheNamespace) {
  server.Put(kube::kCacheWarmups, RetainedObject("old"));
  StartCache();
  Drain();
  server.Put(kube::kCacheWarmups, RetainedObject("train"));
  EXPECT_TRUE(Until("Job/default/old").contains("Job/default/train"));
}

TEST_F(AnnotationTriggersTest, NewLeaderQueuesDeletedJobsThatHaveAWarmup) {
  Json unmarked = RetainedObject("train");
  unmarked["metadata"].erase("annotations");
  server.Put(kube::kCacheWarmups, unmarked);
  StartCache();
  Drain();
  triggers.AddEverything();
  EXPECT_TRUE(Drain().contains("Job/default/train"));
}

TEST_F(AnnotationTriggersTest, NewLeaderQueuesEverything) {
  server.Put(kube::kNamespaces, OptedInNamespaceObject("default"));
  server.Put(kube::kPods, PodObject("train-0"));
  StartCache();
  Drain();
  triggers.AddEverything();
  EXPECT_EQ(Drain(), (Keys{"Deployment/default/llama", "Rollout/default/canary"}));
}

TEST(WorkloadKey, ParsesItsTextAndRejectsOthers) {
  const auto key = WorkloadKey::Parse("Deployment/default/llama");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->kind, "Deployment");
  EXPECT_EQ(key->name.ns, "default");
  EXPECT_EQ(key->ToString(), "Deployment/default/llama");
  for (const char* odd : {"", "x", "/default/llama", "Deployment/", "Deployment/a/b/c"}) {
    EXPECT_FALSE(WorkloadKey::Parse(odd).ok()) << odd;
  }
}

}  // namespace
}  // namespace cachewarm::observe
