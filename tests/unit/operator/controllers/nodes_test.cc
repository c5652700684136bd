// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/nodes.h"

#include <gtest/gtest.h>

#include "lib/codec/json_path.h"
#include "operator/plan/nodes/offer.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::controllers {
namespace {

using op::testing::Eventually;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;

class NodesTest : public op::testing::ClusterCacheFixture {
 protected:
  NodesTest() : nodes_(cluster, Dependencies()) {}

  Nodes::Dependencies Dependencies() {
    return {.client = server,
            .clock = clock,
            .metrics = metrics,
            .log = log,
            .settings = {},
            .agent_namespace = "cachewarm-system"};
  }

  static codec::Json WindowsNode() {
    codec::Json node = NodeObject("w", "uid-w");
    node["status"]["nodeInfo"]["operatingSystem"] = "windows";
    node["metadata"]["labels"]["kubernetes.io/os"] = "windows";
    return node;
  }

  kube::Object CacheOf(const std::string& node) {
    return server.Find(kube::kNodeCaches, {.name = node});
  }

  // Returns spec.evict of the NodeCache.
  codec::Json ConfirmedOn(const std::string& node) {
    const codec::Json object = *CacheOf(node);
    return object.value("spec", codec::Json::object()).value("evict", codec::Json::array());
  }

  Nodes nodes_;
};

TEST_F(NodesTest, NodeGetsOwnedNodeCache) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  const kube::Object created = CacheOf("a");
  ASSERT_NE(created, nullptr);
  const auto decoded = api::DecodeNodeCache(*created);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->node_uid, "uid-a");
}

TEST_F(NodesTest, RepeatedReconcileWritesNothing) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  StartCache();
  const size_t before = Writes();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(Writes(), before);
}

TEST_F(NodesTest, NodeCacheFollowsTheGpusOfItsNode) {
  codec::Json node = NodeObject("a", "uid-a");
  node["status"]["allocatable"]["nvidia.com/gpu"] = "8";
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H200";
  server.Put(kube::kNodes, node);
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  const auto decoded = api::DecodeNodeCache(*CacheOf("a"));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->spec.node, plan::OfferOf(*cluster.node_views.Get({.name = "a"}), {}));
  EXPECT_EQ(decoded->spec.node.devices.at(0).count, 8);
  EXPECT_EQ(decoded->node_uid, "uid-a");
  // The device plugin is removed.
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  ASSERT_TRUE(Eventually([&] {
    const auto cached = cluster.node_cache_views.Get("a");
    return cluster.node_views.Get({.name = "a"})->allocatable.count("nvidia.com/gpu") == 0 &&
           cached != nullptr && !cached->spec.node.devices.empty();
  }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(api::DecodeNodeCache(*CacheOf("a"))->spec.node, api::NodeOffer{});
}

codec::Json SliceObject(const std::string& name, const std::string& node, const std::string& driver,
                        int devices) {
  codec::Json slice = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata", {{"name", name}, {"uid", "uid-" + name}}},
      {"spec",
       {{"driver", driver}, {"nodeName", node}, {"pool", {{"name", node}, {"generation", 1}}}}}};
  for (int i = 0; i < devices; ++i) {
    slice["spec"]["devices"].push_back({{"name", "gpu-" + std::to_string(i)},
                                        {"attributes",
                                         {{"productName", {{"string", "NVIDIA H200"}}},
                                          {"cudaComputeCapability", {{"version", "9.0.0"}}},
                                          {"uuid", {{"string", "GPU-" + std::to_string(i)}}}}}});
  }
  return slice;
}

TEST_F(NodesTest, NodeCacheFollowsTheResourceSlicesOfItsNode) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  server.Put(kube::kResourceSlices, SliceObject("a-gpu", "a", "gpu.nvidia.com", 8));
  server.Put(kube::kResourceSlices, SliceObject("a-cd", "a", "compute-domain.nvidia.com", 2));
  server.Put(kube::kResourceSlices, SliceObject("b-gpu", "b", "gpu.nvidia.com", 4));
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(api::DecodeNodeCache(*CacheOf("a"))->spec.node.published,
            (std::vector<api::PublishedDevices>{{"gpu.nvidia.com", "NVIDIA H200", "9.0.0", 8}}));
  EXPECT_EQ(cluster.resource_slices.store().size(), 2U) << "other drivers are not watched";
  server.Remove(kube::kResourceSlices, {.name = "a-gpu"});
  ASSERT_TRUE(Eventually([&] {
    const auto cached = cluster.node_cache_views.Get("a");
    return cluster.resource_slices.store().size() == 1 && cached != nullptr &&
           !cached->spec.node.published.empty();
  }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(api::DecodeNodeCache(*CacheOf("a"))->spec.node, api::NodeOffer{});
}

TEST_F(NodesTest, ReplacedNodeGetsNewNodeCache) {
  server.Put(kube::kNodes, NodeObject("a", "uid-new"));
  codec::Json old = NodeCacheObject("a", "uid-old");
  old["status"] = {{"node", {{"gpuType", "nvidia/old/sm_70"}}}};
  server.Put(kube::kNodeCaches, old);
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(CacheOf("a"), nullptr);
  ASSERT_TRUE(Eventually([&] { return cluster.node_caches.store().size() == 0; }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ((*CacheOf("a"))["metadata"]["ownerReferences"][0]["uid"], "uid-new");
  EXPECT_FALSE(CacheOf("a")->contains("status"));
}

TEST_F(NodesTest, DeletedNodeLosesItsNodeCache) {
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(CacheOf("a"), nullptr);
}

TEST_F(NodesTest, NonLinuxNodeGetsNoNodeCache) {
  server.Put(kube::kNodes, WindowsNode());
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("w", {}).ok());
  EXPECT_EQ(CacheOf("w"), nullptr);
}

TEST_F(NodesTest, NodeCacheWithoutOwnerIsAdopted) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  codec::Json ownerless = NodeCacheObject("a", "uid-a");
  ownerless["metadata"].erase("ownerReferences");
  server.Put(kube::kNodeCaches, ownerless);
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ((*CacheOf("a"))["metadata"]["ownerReferences"][0]["uid"], "uid-a");
  EXPECT_EQ((*CacheOf("a"))["metadata"]["uid"], "uid-cache-a");
}

// A NodeCache whose agent offers one tree of the warmup "llama".
codec::Json OfferingNodeCache(const codec::Json& tree) {
  codec::Json node_cache = NodeCacheObject("a", "uid-a");
  node_cache["status"]["evictable"] = codec::Json::array({tree});
  return node_cache;
}

codec::Json MountingPodObject(const std::string& name, const std::string& started) {
  codec::Json pod = op::testing::PodObject(name);
  pod["spec"]["nodeName"] = "a";
  pod["spec"]["volumes"] = codec::Json::array(
      {{{"name", "cachewarm"},
        {"hostPath", {{"path", "/var/lib/cachewarm/default/llama/uid-llama/image"}}}}});
  pod["status"]["phase"] = "Running";
  pod["status"]["containerStatuses"] = codec::Json::array(
      {{{"name", "server"}, {"state", {{"running", {{"startedAt", started}}}}}}});
  return pod;
}

TEST_F(NodesTest, AnOfferedTreeIsConfirmedOnceNoPodCanHaveItMounted) {
  const codec::Json tree = {{"generation", std::string(32, 'a')},
                            {"warmupUID", "uid-llama"},
                            {"unlinkedTime", "2026-01-01T00:10:00Z"}};
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  server.Put(kube::kNodeCaches, OfferingNodeCache(tree));
  server.Put(kube::kCacheWarmups, op::testing::WarmupObject("llama"));
  server.Put(kube::kPods, MountingPodObject("old", "2026-01-01T00:09:00Z"));
  server.Put(kube::kPods, MountingPodObject("new", "2026-01-01T00:11:00Z"));
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_TRUE(ConfirmedOn("a").empty()) << "the old pod may have it mounted";
  server.Remove(kube::kPods, {.ns = "default", .name = "old"});
  ASSERT_TRUE(Eventually([&] { return cluster.pods.store().size() == 1; }));
  const auto outcome = nodes_.Reconcile("a", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(ConfirmedOn("a"), codec::Json::array({tree}));
  EXPECT_TRUE(outcome->requeue_after.has_value());
}

TEST_F(NodesTest, ALinkedTreeIsConfirmedOnlyWhenItsWarmupAndPodsAreGone) {
  const codec::Json tree = {{"generation", std::string(32, 'a')}, {"warmupUID", "uid-llama"}};
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  server.Put(kube::kNodeCaches, OfferingNodeCache(tree));
  server.Put(kube::kCacheWarmups, op::testing::WarmupObject("llama"));
  codec::Json unbound = MountingPodObject("unbound", "2026-01-01T00:11:00Z");
  unbound["spec"].erase("nodeName");
  server.Put(kube::kPods, unbound);
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_TRUE(ConfirmedOn("a").empty());
  server.Remove(kube::kCacheWarmups, {.ns = "default", .name = "llama"});
  ASSERT_TRUE(Eventually([&] { return cluster.warmups.store().size() == 0; }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_TRUE(ConfirmedOn("a").empty()) << "a pod may still come to the node";
  server.Remove(kube::kPods, {.ns = "default", .name = "unbound"});
  ASSERT_TRUE(Eventually([&] { return cluster.pods.store().size() == 0; }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(ConfirmedOn("a"), codec::Json::array({tree}));
}

TEST_F(NodesTest, ServerErrorIsReturned) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  StartCache();
  server.Intercept([](const kube::Request& request) {
    return request.verb == "apply" ? absl::UnavailableError("down") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(nodes_.Reconcile("a", {}).status()));
}

// ---- fresh nodes --------------------------------------------------------------------------------

// A Ready node with the cachewarm startup taint between two others, and a warmup whose pods fit it.
class FreshNodeTest : public NodesTest {
 protected:
  FreshNodeTest() {
    codec::Json node = NodeObject("a", "uid-a");
    node["metadata"]["creationTimestamp"] = FormatTime(clock.Now());
    node["metadata"]["labels"]["kept"] = "yes";
    node["spec"]["taints"] = op::testing::FromYaml(R"(
- {key: team, value: x, effect: NoSchedule}
- {key: cachewarm.io/warming, effect: NoSchedule}
- {key: other, effect: NoExecute}
- {key: startup-taint.cluster-autoscaler.kubernetes.io/cachewarm, effect: NoSchedule}
)");
    node["status"]["conditions"][0]["lastTransitionTime"] = FormatTime(clock.Now());
    server.Put(kube::kNodes, node);
    server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
    codec::Json deployment = op::testing::DeploymentObject("llama");
    deployment["spec"]["template"]["spec"]["tolerations"] = {{{"operator", "Exists"}}};
    server.Put(kube::kDeployments, deployment);
    server.Put(kube::kCacheWarmups, op::testing::WarmupObject("llama"));
  }

  void AgentReports(bool prepared) {
    codec::Json agent = op::testing::PodObject("agent-a");
    agent["metadata"]["namespace"] = "cachewarm-system";
    agent["metadata"]["labels"] = {{"app.kubernetes.io/component", "agent"}};
    agent["spec"]["nodeName"] = "a";
    agent["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
    server.Put(kube::kPods, agent);
    codec::Json cache = NodeCacheObject("a", "uid-a");
    cache["status"]["node"] = {{"gpuType", "cpu"}, {"cpuClass", "x86-64-v4/amd-25-17/00000001"}};
    cache["status"]["warmups"] = {
        {{"uid", "uid-llama"},
         {"prepared", prepared ? codec::Json{"image"} : codec::Json::array()}}};
    server.Put(kube::kNodeCaches, cache);
  }

  std::vector<std::string> Taints() {
    std::vector<std::string> keys;
    for (const codec::Json& taint : (*Node())["spec"]["taints"]) {
      keys.push_back(taint["key"].get<std::string>());
    }
    return keys;
  }
  kube::Object Node() { return server.Find(kube::kNodes, {.name = "a"}); }

  const std::vector<std::string> others_ = {"team", "other"};
};

TEST_F(FreshNodeTest, WarmNodeLosesOnlyItsTaint) {
  AgentReports(true);
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(Taints(), others_);
  EXPECT_EQ((*Node())["metadata"]["labels"]["kept"], "yes");
  EXPECT_EQ(Metric("cachewarm_startup_taints_removed_total{reason=\"Warm\"}"), 1);
  EXPECT_TRUE(log.Has("startup taint removed"));
}

TEST_F(FreshNodeTest, WarmingNodeLosesTaintAtDeadline) {
  AgentReports(false);
  StartCache();
  const size_t before = Writes();
  const auto first = nodes_.Reconcile("a", {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Taints().size(), 4U);
  EXPECT_EQ(Writes(), before);
  ASSERT_TRUE(first->requeue_after.has_value());
  EXPECT_LE(*first->requeue_after, std::chrono::seconds(60));
  clock.Advance(std::chrono::seconds(60));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(Taints(), others_);
  EXPECT_EQ(Metric("cachewarm_startup_taints_removed_total{reason=\"DeadlineExceeded\"}"), 1);
}

TEST_F(FreshNodeTest, NewOperatorRemovesTaintAtSameDeadlineWithoutAgent) {
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  clock.Advance(std::chrono::seconds(61));
  Nodes restarted(cluster, Dependencies());
  ASSERT_TRUE(restarted.Reconcile("a", {}).ok());
  EXPECT_EQ(Taints(), others_);
}

TEST_F(FreshNodeTest, ChangedTaintsAreRetried) {
  AgentReports(true);
  StartCache();
  codec::Json moved = *Node();
  server.Intercept([&](const kube::Request& request) {
    return request.verb == "patch" ? absl::InvalidArgumentError("test failed") : absl::OkStatus();
  });
  const auto outcome = nodes_.Reconcile("a", {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->requeue_after.has_value());
  EXPECT_EQ(Taints().size(), 4U);
}

TEST_F(FreshNodeTest, NonLinuxNodeLosesTaintAtDeadline) {
  codec::Json windows = WindowsNode();
  windows["metadata"]["creationTimestamp"] = FormatTime(clock.Now());
  windows["spec"]["taints"] = {{{"key", "cachewarm.io/warming"}, {"effect", "NoSchedule"}}};
  server.Put(kube::kNodes, windows);
  StartCache();
  ASSERT_TRUE(nodes_.Reconcile("w", {}).ok());
  clock.Advance(std::chrono::seconds(60));
  ASSERT_TRUE(nodes_.Reconcile("w", {}).ok());
  const kube::Object node = server.Find(kube::kNodes, {.name = "w"});
  EXPECT_TRUE(codec::At(*node, {"spec", "taints"})->empty());
  EXPECT_EQ(CacheOf("w"), nullptr);
}

}  // namespace
}  // namespace cachewarm::controllers
