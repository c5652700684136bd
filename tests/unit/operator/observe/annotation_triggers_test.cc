// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/annotation_triggers.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/codec/json_value.h"
#include "operator/workloads/standalone_pods.h"
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
using op::testing::StandalonePodObject;
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

  static std::string LooseKey(const std::string& app) {
    return "Namespace/default/" +
           workloads::StandalonePodsOf(StandalonePodObject("any", app))->warmup;
  }

  // The keys until `last` is among them. Of what is asked together workloads come first, in the
  // order of api::kWorkloadKinds, then loose pods.
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

TEST_F(AnnotationTriggersTest, AnAnnotationAsksAgainAndAStatusDoesNot) {
  Settle();
  Json moved = DeploymentObject("llama");
  moved["status"]["replicas"] = 1;
  server.Put(kube::kDeployments, moved);
  server.Edit(kube::kRollouts, {.ns = "default", .name = "canary"}, [](Json& rollout) {
    rollout["metadata"]["annotations"]["cachewarm.io/warm"] = "true";
  });
  EXPECT_EQ(Until("Rollout/default/canary"), Keys{"Rollout/default/canary"});
}

TEST_F(AnnotationTriggersTest, ALabelOfTheNamespaceAsksAllOfIt) {
  Settle();
  server.Edit(kube::kNamespaces, {.name = "default"},
              [](Json& ns) { ns["metadata"]["labels"]["cachewarm.io/warm"] = "true"; });
  EXPECT_TRUE(Until("Rollout/default/canary").contains("Deployment/default/llama"));
}

TEST_F(AnnotationTriggersTest, AWarmupThatIsChangedOrGoneAsksItsOwner) {
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
      << "whoever wanted the name may have it";
}

TEST_F(AnnotationTriggersTest, ANewLeaderAsksEverybody) {
  server.Put(kube::kNamespaces, OptedInNamespaceObject("default"));
  server.Put(kube::kPods, StandalonePodObject("train-0", "train"));
  StartCache();
  Drain();
  triggers.AddEverything();
  EXPECT_EQ(Drain(),
            (Keys{"Deployment/default/llama", "Rollout/default/canary", LooseKey("train")}));
}

TEST_F(AnnotationTriggersTest, PodsWithoutAWorkloadAreAskedWhenOneComesOrGoesWhereANamespaceAsks) {
  server.Put(kube::kPods, StandalonePodObject("early-0", "early"));
  Settle();
  server.Put(kube::kNamespaces, OptedInNamespaceObject("default"));
  EXPECT_TRUE(Until(LooseKey("early")).contains("Rollout/default/canary"));
  server.Put(kube::kPods, StandalonePodObject("train-0", "train"));
  EXPECT_EQ(Until(LooseKey("train")), Keys{LooseKey("train")});
  server.Edit(kube::kPods, {.ns = "default", .name = "train-0"},
              [](Json& pod) { pod["spec"]["nodeName"] = "node-a"; });
  server.Put(kube::kPods, PodObject("plain-0"));
  server.Remove(kube::kPods, {.ns = "default", .name = "early-0"});
  EXPECT_EQ(Until(LooseKey("early")), Keys{LooseKey("early")});
}

TEST_F(AnnotationTriggersTest, AWarmupOfSuchPodsAsksThemAgainWhenItIsChanged) {
  Settle();
  Json warmup = WarmupObject("train-1");
  warmup["metadata"]["ownerReferences"] = OwnedBy("v1", "Namespace", "default");
  server.Put(kube::kCacheWarmups, warmup);
  EXPECT_EQ(Until("Namespace/default/train-1"), Keys{"Namespace/default/train-1"});
  server.Edit(kube::kCacheWarmups, {.ns = "default", .name = "train-1"},
              [](Json& each) { each["spec"]["paused"] = true; });
  EXPECT_EQ(Until("Namespace/default/train-1"), Keys{"Namespace/default/train-1"});
}

TEST(WorkloadKey, IsReadBackAndRefusesWhatItIsNot) {
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
