// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/triggers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "lib/base/clock.h"
#include "operator/observe/observe_warmup.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using op::testing::DeploymentObject;
using op::testing::Eventually;
using op::testing::FromYaml;
using op::testing::HeldPodObject;
using op::testing::NamespaceObject;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;
using op::testing::PodObject;
using op::testing::WarmupObject;
using Keys = std::set<std::string>;

class TriggersTest : public op::testing::ClusterCacheFixture {
 protected:
  TriggersTest()
      : warmups(queue_clock),
        nodes(queue_clock),
        held(queue_clock),
        triggers(cluster, {warmups, nodes, held}, "cachewarm-system", queue_clock) {
    triggers.Attach();
    for (const char* name : {"llama", "mistral"}) {
      codec::Json warmup = WarmupObject(name);
      warmup["status"]["injection"] = {{"labels", {{"app", name}}}, {"container", "server"}};
      server.Put(kube::kCacheWarmups, warmup);
    }
    codec::Json elsewhere = WarmupObject("llama");
    elsewhere["metadata"]["namespace"] = "prod";
    elsewhere["metadata"]["uid"] = "uid-prod";
    elsewhere["status"]["injection"] = {{"labels", {{"app", "llama"}}}, {"container", "server"}};
    server.Put(kube::kCacheWarmups, elsewhere);
  }

  // The cache's threads use the queues, so stop them first.
  ~TriggersTest() override { StopCache(); }

  // Takes all waiting keys, including delayed ones.
  Keys Drain(kube::WorkQueue& queue) {
    Keys keys;
    while (queue.size() > 0 || queue.delayed() > 0) {
      queue_clock.Advance(std::chrono::seconds(1));
      const auto key = queue.Get({});  // keys delayed before the advance are due now
      keys.insert(*key);
      queue.Done(*key);
    }
    return keys;
  }

  // Starts the cache and drains the keys of the initial lists.
  void Settle() {
    StartCache();
    ASSERT_EQ(Drain(warmups).size(), 3U);
    Drain(nodes);
    Drain(held);
  }

  // Returns the keys queued by one change, once there are `count`.
  Keys After(kube::WorkQueue& queue, const std::function<void()>& change, size_t count = 1) {
    change();
    Keys keys;
    Eventually([&] {
      keys.merge(Drain(queue));
      return keys.size() >= count;
    });
    return keys;
  }

  // Separate from the cache's clock, whose watches must not time out.
  fakes::FakeClock queue_clock;
  kube::WorkQueue warmups;
  kube::WorkQueue nodes;
  kube::WorkQueue held;
  Triggers triggers;
};

TEST_F(TriggersTest, PodQueuesWarmupWithItsLabels) {
  Settle();
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kPods, PodObject("a")); }),
            Keys{"default/llama"});
}

TEST_F(TriggersTest, StormOfPodUpdatesIsCoveredByFewPlans) {
  Settle();
  server.Put(kube::kPods, PodObject("a"));
  std::atomic<int> plans = 0;
  std::stop_source ended;
  std::jthread planner([&] {
    while (const auto key = warmups.Get(ended.get_token())) {
      ++plans;
      warmups.Done(*key);
    }
  });
  for (int i = 0; i < 1'000; ++i) {  // one minute
    server.Edit(kube::kPods, {"default", "a"}, [&](codec::Json& pod) {
      pod["metadata"]["annotations"]["cachewarm.io/start"] = std::to_string(i);
    });
    const kube::Object there = server.Find(kube::kPods, {"default", "a"});
    const auto has_seen = [&] {
      const kube::Object stored = cluster.pods.store().Get({"default", "a"});
      return stored != nullptr &&
             kube::ResourceVersionOf(*stored) == kube::ResourceVersionOf(*there);
    };
    while (!has_seen()) {
      std::this_thread::yield();
    }
    queue_clock.Advance(std::chrono::milliseconds(60));
  }
  EXPECT_LE(plans, 650) << "one for each update without the limit";
  EXPECT_GE(plans, 60);
  ended.request_stop();
}

TEST_F(TriggersTest, ResourceSliceQueuesItsNode) {
  Settle();
  const auto put = [&](const char* driver) {
    codec::Json slice = FromYaml(R"(
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {uid: uid-s}
spec: {nodeName: a, pool: {name: a, generation: 1}, devices: []}
)");
    slice["metadata"]["name"] = driver;
    slice["spec"]["driver"] = driver;
    server.Put(kube::kResourceSlices, slice);
  };
  EXPECT_EQ(After(nodes, [&] { put("gpu.nvidia.com"); }), Keys{"a"});
  EXPECT_EQ(Drain(warmups), Keys{});
}

TEST_F(TriggersTest, InjectedPodQueuesDeletedWarmup) {
  Settle();
  codec::Json pod = HeldPodObject("a", "gone");
  pod["metadata"]["labels"] = {{"app", "none"}};
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kPods, pod); }), Keys{"default/gone"});
  EXPECT_EQ(Drain(held), Keys{"default/a"});
}

TEST_F(TriggersTest, InvalidWarmupAnnotationQueuesNothing) {
  Settle();
  for (const std::string& value : {std::string("a/b"), std::string(200'000, 'a')}) {
    codec::Json pod = HeldPodObject("a", value);
    pod["metadata"]["labels"] = {{"app", "none"}};
    EXPECT_EQ(After(held, [&] { server.Put(kube::kPods, pod); }), Keys{"default/a"});
    EXPECT_EQ(Drain(warmups), Keys{});
  }
}

TEST_F(TriggersTest, ReleasedPodQueuesWarmupsHoldingItsGroup) {
  const auto member = [](const char* name, const char* warmup, bool in_group) {
    codec::Json pod = HeldPodObject(name, warmup);
    pod["metadata"]["labels"] = {{"app", warmup}};
    if (in_group) {
      pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "train";
    }
    return pod;
  };
  server.Put(kube::kPods, member("leader", "llama", true));
  server.Put(kube::kPods, member("worker", "mistral", true));
  server.Put(kube::kPods, member("alone", "llama", false));
  Settle();
  const auto release = [&](codec::Json pod) {
    pod["spec"].erase("schedulingGates");
    server.Put(kube::kPods, pod);
  };
  EXPECT_EQ(After(warmups, [&] { release(member("alone", "llama", false)); }),
            Keys{"default/llama"});
  EXPECT_EQ(After(
                warmups, [&] { release(member("leader", "llama", true)); }, 2),
            (Keys{"default/llama", "default/mistral"}));
}

TEST_F(TriggersTest, BuilderPodAndJobQueueTheirWarmup) {
  Settle();
  codec::Json pod = PodObject("a");
  pod["metadata"]["labels"] = {{std::string(api::kBuilderWarmupLabel), "uid-prod"}};
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kPods, pod); }), Keys{"prod/llama"});
  codec::Json job = pod;
  job["kind"] = "Job";
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kJobs, job); }), Keys{"prod/llama"});
}

TEST_F(TriggersTest, WorkloadQueuesWarmupThatReferencesIt) {
  Settle();
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kDeployments, DeploymentObject("mistral")); }),
            Keys{"default/mistral"});
}

TEST_F(TriggersTest, WorkloadQueuesWarmupThatSelectsItsPods) {
  codec::Json selecting = WarmupObject("selecting");
  selecting["spec"] = FromYaml("{selector: {matchLabels: {app: llama}}}");
  selecting["status"]["injection"] = {{"labels", {{"app", "llama"}}}, {"container", "server"}};
  server.Put(kube::kCacheWarmups, selecting);
  StartCache();
  ASSERT_EQ(Drain(warmups).size(), 4U);
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kDeployments, DeploymentObject("any")); }),
            Keys{"default/selecting"});
  codec::Json other = DeploymentObject("other");
  other["spec"]["template"]["metadata"]["labels"]["app"] = "none";
  server.Put(kube::kDeployments, other);
  EXPECT_EQ(After(
                warmups, [&] { server.Put(kube::kDeployments, DeploymentObject("mistral")); }, 2),
            (Keys{"default/mistral", "default/selecting"}));
}

TEST_F(TriggersTest, NodeQueuesAllWarmupsButHeartbeatNone) {
  Settle();
  const Keys all = {"default/llama", "default/mistral", "prod/llama"};
  EXPECT_EQ(After(
                warmups, [&] { server.Put(kube::kNodes, NodeObject("n", "u")); }, 3),
            all);
  EXPECT_EQ(After(
                warmups,
                [&] {
                  server.Edit(kube::kNodes, {.name = "n"}, [](codec::Json& node) {
                    node["status"]["conditions"][0]["lastHeartbeatTime"] = "x";
                  });
                  server.Edit(kube::kNodes, {.name = "n"},
                              [](codec::Json& node) { node["spec"]["unschedulable"] = true; });
                },
                3),
            all);
  EXPECT_EQ(Drain(nodes), Keys{"n"});
}

TEST_F(TriggersTest, NodeCacheQueuesItsWarmups) {
  Settle();
  codec::Json node_cache = NodeCacheObject("n", "u");
  node_cache["spec"]["warmups"] = {{{"uid", "uid-prod"}, {"namespace", "prod"}, {"name", "llama"}}};
  ASSERT_EQ(After(
                warmups, [&] { server.Put(kube::kNodeCaches, node_cache); }, 3)
                .size(),
            3U);
  node_cache["status"]["warmups"] = {{{"uid", "uid-prod"}, {"generation", "g"}}};
  EXPECT_EQ(After(warmups, [&] { server.Put(kube::kNodeCaches, node_cache); }), Keys{"prod/llama"});
}

class NodeCacheTriggersTest : public TriggersTest {
 protected:
  // Puts a node used by all three warmups and drains the resulting keys.
  void SettleOneNode() {
    Settle();
    const auto entry = [](const char* uid, const char* ns, const char* name) {
      return codec::Json{{"uid", uid}, {"namespace", ns}, {"name", name}};
    };
    codec::Json node_cache = NodeCacheObject("n", "u");
    node_cache["spec"]["warmups"] = {
        entry("uid-llama", "default", "llama"), entry("uid-mistral", "default", "mistral"),
        entry("uid-prod", "prod", "llama"), entry("uid-gone", "prod", "gone")};
    node_cache["spec"]["starts"] = {{{"podUID", "p"}, {"warmupUID", "uid-mistral"}}};
    node_cache["status"]["node"] = {
        {"cpuClass", "x86"}, {"root", {{"writable", true}, {"usedBytes", 1}, {"freeBytes", 9}}}};
    ASSERT_EQ(After(
                  warmups, [&] { server.Put(kube::kNodeCaches, node_cache); }, 3)
                  .size(),
              3U);
  }
  Keys AfterEdit(const std::function<void(codec::Json&)>& edit, size_t count = 1) {
    return After(
        warmups, [&] { server.Edit(kube::kNodeCaches, {.name = "n"}, edit); }, count);
  }
};

TEST_F(NodeCacheTriggersTest, OnlyTheChangedWarmupIsQueued) {
  SettleOneNode();
  EXPECT_EQ(AfterEdit([](codec::Json& node_cache) {
              node_cache["status"]["warmups"] = {{{"uid", "uid-mistral"}, {"generation", "g"}}};
            }),
            Keys{"default/mistral"});
  EXPECT_EQ(AfterEdit([](codec::Json& node_cache) {
              node_cache["spec"]["warmups"][2]["fetchPriority"] = 1;
            }),
            Keys{"prod/llama"});
  EXPECT_EQ(AfterEdit([](codec::Json& node_cache) { node_cache["spec"]["warmups"].erase(3); }),
            Keys{"prod/gone"});
}

TEST_F(NodeCacheTriggersTest, UnchangedReportQueuesNothing) {
  SettleOneNode();
  Drain(nodes);
  server.Edit(kube::kNodeCaches, {.name = "n"}, [](codec::Json& node_cache) {
    node_cache["status"]["heartbeatTime"] = "2026-01-01T00:00:00Z";
    node_cache["status"]["node"]["root"]["usedBytes"] = 5;
    node_cache["status"]["node"]["root"]["freeBytes"] = 5;
  });
  ASSERT_TRUE(Eventually([&] { return nodes.size() == 1; })) << "the store has the report";
  EXPECT_EQ(Drain(warmups), Keys{});
}

TEST_F(NodeCacheTriggersTest, ChangedNodeFactsQueueAllWarmups) {
  SettleOneNode();
  EXPECT_EQ(
      AfterEdit(
          [](codec::Json& node_cache) { node_cache["status"]["node"]["root"]["writable"] = false; },
          3)
          .size(),
      3U);
}

TEST_F(NodeCacheTriggersTest, EvidenceQueuesWarmupOfItsPod) {
  SettleOneNode();
  EXPECT_EQ(AfterEdit([](codec::Json& node_cache) {
              node_cache["status"]["starts"] = {{{"podUID", "p"}, {"result", "hit"}}};
            }),
            Keys{"default/mistral"});
  EXPECT_EQ(AfterEdit([](codec::Json& node_cache) {
              node_cache["spec"]["captures"] = {{{"id", "q"}, {"warmupUID", "uid-llama"}}};
            }),
            Keys{"default/llama"});
}

TEST_F(TriggersTest, StartedAgentQueuesAllWarmups) {
  Settle();
  codec::Json agent = PodObject("agent");
  agent["metadata"]["namespace"] = "cachewarm-system";
  agent["metadata"]["labels"] = {{"app.kubernetes.io/component", "agent"},
                                 {"app.kubernetes.io/name", "cachewarm"}};
  EXPECT_EQ(After(
                warmups, [&] { server.Put(kube::kPods, agent); }, 3)
                .size(),
            3U);
}

TEST_F(TriggersTest, AgentOfAnotherProductQueuesNothing) {
  Settle();
  const auto put = [&](const std::string& ns, const std::string& product, const std::string& node) {
    codec::Json pod = PodObject("agent-" + node);
    pod["metadata"]["namespace"] = ns;
    pod["metadata"]["labels"] = {{"app.kubernetes.io/component", "agent"},
                                 {"app.kubernetes.io/name", product}};
    pod["spec"]["nodeName"] = node;
    server.Put(kube::kPods, pod);
  };
  const auto change = [&] {
    put("cachewarm-system", "monitoring", "a");
    put("monitoring", "cachewarm", "b");
    put("cachewarm-system", "cachewarm", "c");
  };
  EXPECT_EQ(After(nodes, change), Keys{"c"});
}

TEST_F(TriggersTest, NamespaceQueuesItsWarmups) {
  Settle();
  EXPECT_EQ(After(
                warmups, [&] { server.Put(kube::kNamespaces, NamespaceObject("default")); }, 2),
            (Keys{"default/llama", "default/mistral"}));
}

TEST_F(TriggersTest, ChangedSpecQueuesOtherWarmupsOfNamespace) {
  Settle();
  EXPECT_EQ(After(warmups,
                  [&] {
                    server.Edit(kube::kCacheWarmups, {"default", "llama"}, [](codec::Json& warmup) {
                      warmup["status"]["summary"]["hit"] = "9%";
                    });
                  }),
            Keys{"default/llama"});
  EXPECT_EQ(After(
                warmups,
                [&] {
                  server.Edit(kube::kCacheWarmups, {"default", "llama"},
                              [](codec::Json& warmup) { warmup["spec"]["paused"] = true; });
                },
                2),
            (Keys{"default/llama", "default/mistral"}));
}

TEST_F(TriggersTest, LeaderQueuesEverything) {
  codec::Json node_cache = NodeCacheObject("n", "u");
  node_cache["spec"]["warmups"] = {
      {{"uid", "old"}, {"namespace", "default"}, {"name", "left-behind"}}};
  server.Put(kube::kNodeCaches, node_cache);
  server.Put(kube::kNodes, NodeObject("n", "u"));
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  Settle();
  triggers.AddEverything();
  EXPECT_EQ(Drain(warmups),
            (Keys{"default/llama", "default/mistral", "prod/llama", "default/left-behind"}));
  EXPECT_EQ(Drain(nodes), Keys{"n"});
  EXPECT_EQ(Drain(held), Keys{"default/a"});
}

TEST_F(TriggersTest, AgentPodQueuesItsNode) {
  StartCache();
  Drain(nodes);
  codec::Json agent = PodObject("agent-a");
  agent["metadata"]["namespace"] = "cachewarm-system";
  agent["metadata"]["labels"] = {{"app.kubernetes.io/component", "agent"},
                                 {"app.kubernetes.io/name", "cachewarm"}};
  agent["spec"]["nodeName"] = "a";
  server.Put(kube::kPods, agent);
  ASSERT_TRUE(Eventually([&] { return nodes.size() + nodes.delayed() > 0; }));
  EXPECT_EQ(Drain(nodes), Keys{"a"});
}

TEST_F(TriggersTest, ChangedWarmupQueuesWarmingNodes) {
  codec::Json fresh = NodeObject("fresh", "uid-fresh");
  fresh["spec"]["taints"] = {{{"key", "cachewarm.io/warming"}, {"effect", "NoSchedule"}}};
  server.Put(kube::kNodes, fresh);
  server.Put(kube::kNodes, NodeObject("old", "uid-old"));
  StartCache();
  ASSERT_TRUE(Eventually([&] { return nodes.size() == 2; }));
  Drain(nodes);
  server.Put(kube::kCacheWarmups, WarmupObject("new"));
  ASSERT_TRUE(Eventually([&] { return nodes.size() + nodes.delayed() > 0; }));
  EXPECT_EQ(Drain(nodes), Keys{"fresh"});
}

}  // namespace
}  // namespace cachewarm::observe
