// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/observe_warmup.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using op::testing::DeploymentObject;
using op::testing::FromYaml;
using op::testing::HeldPodObject;
using op::testing::NamespaceObject;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;
using op::testing::PodObject;
using op::testing::WarmupObject;

class SnapshotTest : public op::testing::ClusterCacheFixture {
 protected:
  model::Snapshot Observe(const std::string& name = "llama") {
    const auto warmup = cluster.warmup_views.Get({"default", name});
    return observe::Observe(cluster, *warmup,
                            {.now = clock.Now(), .agent_namespace = "cachewarm-system"});
  }

  static std::set<std::string> NamesOf(const model::Snapshot& snapshot) {
    std::set<std::string> names;
    for (const auto& pod : snapshot.pods) {
      names.insert(pod->meta.name);
    }
    return names;
  }

  static codec::Json JobObject(const std::string& name, const std::string& warmup) {
    codec::Json job = FromYaml("{apiVersion: batch/v1, kind: Job, spec: {}, status: {}}");
    const std::string uid = "uid-" + warmup;
    job["metadata"] = {
        {"name", name},
        {"namespace", "default"},
        {"uid", "uid-" + name},
        {"labels", {{"cachewarm.io/builder-warmup", uid}, {"cachewarm.io/builder-key", "k"}}},
        {"ownerReferences", {{{"kind", "CacheWarmup"}, {"name", warmup}, {"uid", uid}}}}};
    return job;
  }

  void PutJob(const std::string& name, const std::string& warmup, const char* ended = nullptr) {
    codec::Json job = JobObject(name, warmup);
    if (ended != nullptr) {
      job["status"]["conditions"] = {{{"type", ended}, {"status", "True"}, {"message", "too bad"}}};
    }
    server.Put(kube::kJobs, job);
  }

  void PutWarmupWithJobs(const std::string& name, const std::vector<std::string>& jobs) {
    codec::Json warmup = WarmupObject(name);
    for (const std::string& job : jobs) {
      warmup["status"]["builders"].push_back(
          {{"key", std::string(64, 'a')}, {"state", "Elected"}, {"job", job}});
    }
    server.Put(kube::kCacheWarmups, warmup);
  }

  void PutAgent(const std::string& node, bool ready) {
    codec::Json agent = PodObject("agent-" + node);
    agent["metadata"]["namespace"] = "cachewarm-system";
    agent["metadata"]["labels"] = {{std::string(kAgentLabel), std::string(kAgentLabelValue)}};
    agent["spec"]["nodeName"] = node;
    agent["status"] = {{"phase", "Running"},
                       {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}};
    server.Put(kube::kPods, agent);
  }
};

TEST_F(SnapshotTest, HasPodsOfWorkloadAndBuilders) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kPods, PodObject("plain"));
  server.Put(kube::kPods, HeldPodObject("held", "llama"));
  codec::Json builder = PodObject("builder");
  builder["metadata"]["labels"] = {{"cachewarm.io/builder-warmup", "uid-llama"}};
  builder["metadata"]["ownerReferences"] = {{{"kind", "Job"}, {"name", "j"}, {"uid", "uid-j"}}};
  server.Put(kube::kPods, builder);
  codec::Json foreign = builder;
  foreign["metadata"]["name"] = "foreign";
  foreign["metadata"]["namespace"] = "prod";
  server.Put(kube::kPods, foreign);
  codec::Json forged = builder;
  forged["metadata"]["name"] = "forged";
  forged["metadata"].erase("ownerReferences");
  server.Put(kube::kPods, forged);
  codec::Json other = PodObject("other");
  other["metadata"]["labels"] = {{"app", "mistral"}};
  server.Put(kube::kPods, other);
  codec::Json elsewhere = PodObject("elsewhere");
  elsewhere["metadata"]["namespace"] = "prod";
  server.Put(kube::kPods, elsewhere);
  StartCache();
  EXPECT_EQ(NamesOf(Observe()), (std::set<std::string>{"plain", "held", "builder"}));
}

TEST_F(SnapshotTest, GroupOverTwoWarmupsSharesReleasedPods) {
  for (const char* name : {"llama", "mistral"}) {
    server.Put(kube::kCacheWarmups, WarmupObject(name));
  }
  const auto put = [&](const std::string& name, const char* warmup, const char* group, bool held,
                       const char* phase = "Pending") {
    codec::Json pod = HeldPodObject(name, warmup);
    pod["metadata"]["labels"] = {{"app", warmup}, {"jobset.sigs.k8s.io/jobset-name", group}};
    pod["status"]["phase"] = phase;
    if (!held) {
      pod["spec"].erase("schedulingGates");
    }
    server.Put(kube::kPods, pod);
  };
  for (const char* group : {"free", "held", "over", "own"}) {
    put(std::string(group) + "-1", "llama", group, true);
  }
  put("free-2", "mistral", "free", false);
  put("held-2", "mistral", "held", true);
  put("over-2", "mistral", "over", false, "Succeeded");
  put("own-2", "llama", "own", false);  // belongs to the snapshot itself
  put("another-1", "mistral", "another", false);
  StartCache();
  EXPECT_EQ(Observe().groups_free_elsewhere,
            std::set<std::string>{"jobset.sigs.k8s.io/jobset-name=free"});
  EXPECT_EQ(Observe("mistral").groups_free_elsewhere, std::set<std::string>());
}

TEST_F(SnapshotTest, NodesHaveNodeCacheAgentAndFreeResources) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  for (const char* node : {"a", "b"}) {
    server.Put(kube::kNodes, NodeObject(node, std::string("uid-") + node));
  }
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  PutAgent("a", true);
  PutAgent("b", false);
  codec::Json pod = PodObject("busy");
  pod["spec"]["nodeName"] = "a";
  pod["status"]["phase"] = "Running";
  server.Put(kube::kPods, pod);
  StartCache();
  ASSERT_TRUE(op::testing::Eventually([&] {
    const api::Resources used = cluster.usage.Of("a");
    return used.contains("pods") && used.at("pods") == 2;
  }));
  const model::Snapshot snapshot = Observe();
  ASSERT_EQ(snapshot.nodes.size(), 2U);
  EXPECT_EQ(snapshot.nodes[0].node->meta.name, "a");
  EXPECT_TRUE(snapshot.nodes[0].agent_ready);
  ASSERT_NE(snapshot.nodes[0].cache, nullptr);
  // The fixture's agent pod requests a CPU too.
  EXPECT_EQ(snapshot.nodes[0].free.at("cpu"), 8000 - 2000);
  EXPECT_EQ(snapshot.nodes[0].free.at("pods"), 108);
  EXPECT_FALSE(snapshot.nodes[1].agent_ready);
  EXPECT_EQ(snapshot.nodes[1].cache, nullptr);
}

TEST_F(SnapshotTest, JobsAreOwnOrCounted) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutWarmupWithJobs("another", {"running", "done"});
  PutJob("own", "llama");
  PutJob("failed", "llama", "Failed");
  PutJob("running", "another");
  PutJob("done", "another", "Complete");
  StartCache();
  const model::Snapshot snapshot = Observe();
  ASSERT_EQ(snapshot.jobs.size(), 2U);
  EXPECT_EQ(snapshot.jobs[0].name, "failed");
  EXPECT_TRUE(snapshot.jobs[0].failed);
  EXPECT_EQ(snapshot.jobs[0].message, "too bad");
  EXPECT_EQ(snapshot.jobs[1].key, "k");
  EXPECT_EQ(snapshot.builder_jobs_elsewhere, 1);
}

TEST_F(SnapshotTest, JobsThatProveBundlesAreCounted) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json another = WarmupObject("another");
  another["status"]["builders"].push_back({{"key", std::string(64, 'a')},
                                           {"state", "Proving"},
                                           {"job", "built"},
                                           {"proof", {{"job", "proves"}}}});
  server.Put(kube::kCacheWarmups, another);
  PutJob("proves", "another");
  PutJob("proves-too", "another");
  StartCache();
  EXPECT_EQ(Observe().builder_jobs_elsewhere, 1);
}

TEST_F(SnapshotTest, JobsWithForgedLabelAreNotCounted) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutWarmupWithJobs("another", {"known", "renewed"});
  PutJob("known", "another");
  PutJob("unknown-to-its-warmup", "another");
  PutJob("of-none", "gone");
  codec::Json job = JobObject("without-owner", "another");
  job["metadata"].erase("ownerReferences");
  server.Put(kube::kJobs, job);
  codec::Json old = JobObject("renewed", "another");  // of a deleted warmup of the same name
  old["metadata"]["labels"]["cachewarm.io/builder-warmup"] = "uid-old";
  old["metadata"]["ownerReferences"][0]["uid"] = "uid-old";
  server.Put(kube::kJobs, old);
  StartCache();
  EXPECT_EQ(Observe().builder_jobs_elsewhere, 1);
}

TEST_F(SnapshotTest, JobThatTheWarmupDoesNotOwnIsNoBuilder) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutJob("own", "llama");
  codec::Json job = JobObject("without-owner", "llama");
  job["metadata"].erase("ownerReferences");
  server.Put(kube::kJobs, job);
  StartCache();
  const model::Snapshot snapshot = Observe();
  ASSERT_EQ(snapshot.jobs.size(), 1U);
  EXPECT_EQ(snapshot.jobs[0].name, "own");
}

TEST_F(SnapshotTest, OtherWarmupsAreOrderedByTimeThenUid) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kCacheWarmups, WarmupObject("aardvark"));  // same second, smaller uid
  codec::Json late = WarmupObject("late");
  late["metadata"]["creationTimestamp"] = "2026-01-01T00:00:09Z";
  server.Put(kube::kCacheWarmups, late);
  StartCache();
  const model::Snapshot snapshot = Observe();
  ASSERT_EQ(snapshot.others.size(), 2U);
  EXPECT_EQ(snapshot.others[0].name, "aardvark");
  EXPECT_TRUE(snapshot.others[0].older);
  EXPECT_FALSE(snapshot.others[1].older);
  EXPECT_FALSE(Observe("aardvark").others[0].older);
}

TEST_F(SnapshotTest, HasNamespaceLabels) {
  codec::Json ns = NamespaceObject("default");
  ns["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline";
  server.Put(kube::kNamespaces, ns);
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  EXPECT_EQ(Observe().namespace_labels.at("pod-security.kubernetes.io/enforce"), "baseline");
}

TEST_F(SnapshotTest, FindsPodsOfDeletedWarmup) {
  server.Put(kube::kPods, HeldPodObject("held", "gone"));
  StartCache();
  const model::Snapshot snapshot =
      observe::Observe(cluster, {.ns = "default", .name = "gone", .deleting = true},
                       {.now = clock.Now(), .agent_namespace = "cachewarm-system"});
  EXPECT_EQ(NamesOf(snapshot), std::set<std::string>{"held"});
}

TEST(PodIndex, ListsAllIndexValues) {
  codec::Json pod = HeldPodObject("a", "llama");
  pod["metadata"]["labels"]["cachewarm.io/builder-warmup"] = "u";
  EXPECT_EQ(PodIndex(pod),
            (std::vector<std::string>{kHeldIndex, "warmup:default/llama", "builder:u"}));
  EXPECT_TRUE(PodIndex(PodObject("b")).empty());
  EXPECT_TRUE(PodIndex(codec::Json::array()).empty());
}

TEST_F(SnapshotTest, UndecodableObjectIsOmittedAndLoggedOnce) {
  codec::Json odd = WarmupObject("odd");
  odd["spec"]["gate"] = {{"maxHoldSeconds", "soon"}};
  server.Put(kube::kCacheWarmups, odd);
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  EXPECT_EQ(cluster.warmup_views.Get({"default", "odd"}), nullptr);
  EXPECT_EQ(cluster.warmup_views.List().size(), 1U);
  EXPECT_TRUE(log.Has("cannot decode object"));
  EXPECT_TRUE(log.Has("maxHoldSeconds"));
}

}  // namespace
}  // namespace cachewarm::observe
