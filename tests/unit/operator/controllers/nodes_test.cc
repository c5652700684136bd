// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/nodes.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/objects.h"
#include "tests/unit/operator/world_fixture.h"

namespace cachewarm::controllers {
namespace {

using op::testing::Eventually;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;

class NodesTest : public op::testing::WorldFixture {
 protected:
  NodesTest() : nodes_(server, world) {}

  kube::Object CacheOf(const std::string& node) {
    return server.Find(kube::kNodeCaches, {.name = node});
  }

  Nodes nodes_;
};

TEST_F(NodesTest, ANodeGetsItsNodeCacheOwnedByIt) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  StartWorld();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  const kube::Object created = CacheOf("a");
  ASSERT_NE(created, nullptr);
  const auto decoded = api::DecodeNodeCache(*created);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->node_uid, "uid-a");
}

TEST_F(NodesTest, DoingItAgainWritesNothing) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  StartWorld();
  const size_t before = Writes();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(Writes(), before);
}

TEST_F(NodesTest, ANodeReplacedUnderItsNameStartsOver) {
  server.Put(kube::kNodes, NodeObject("a", "uid-new"));
  codec::Json old = NodeCacheObject("a", "uid-old");
  old["status"] = {{"node", {{"gpuType", "nvidia/old/sm_70"}}}};
  server.Put(kube::kNodeCaches, old);
  StartWorld();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(CacheOf("a"), nullptr);
  ASSERT_TRUE(Eventually([&] { return world.node_caches.store().size() == 0; }));
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ((*CacheOf("a"))["metadata"]["ownerReferences"][0]["uid"], "uid-new");
  EXPECT_FALSE(CacheOf("a")->contains("status"));
}

TEST_F(NodesTest, TheNodeCacheOfANodeThatIsGoneGoesToo) {
  server.Put(kube::kNodeCaches, NodeCacheObject("a", "uid-a"));
  StartWorld();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ(CacheOf("a"), nullptr);
}

TEST_F(NodesTest, AnotherOperatingSystemGetsNone) {
  codec::Json windows = NodeObject("w", "uid-w");
  windows["status"]["nodeInfo"]["operatingSystem"] = "windows";
  windows["metadata"]["labels"]["kubernetes.io/os"] = "windows";
  server.Put(kube::kNodes, windows);
  StartWorld();
  ASSERT_TRUE(nodes_.Reconcile("w", {}).ok());
  EXPECT_EQ(CacheOf("w"), nullptr);
}

TEST_F(NodesTest, ANodeCacheWithoutOwnerIsAdopted) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  codec::Json ownerless = NodeCacheObject("a", "uid-a");
  ownerless["metadata"].erase("ownerReferences");
  server.Put(kube::kNodeCaches, ownerless);
  StartWorld();
  ASSERT_TRUE(nodes_.Reconcile("a", {}).ok());
  EXPECT_EQ((*CacheOf("a"))["metadata"]["ownerReferences"][0]["uid"], "uid-a");
  EXPECT_EQ((*CacheOf("a"))["metadata"]["uid"], "uid-cache-a");
}

TEST_F(NodesTest, AServerThatFailsIsAnErrorToTryAgain) {
  server.Put(kube::kNodes, NodeObject("a", "uid-a"));
  StartWorld();
  server.Intercept([](const kube::Request& request) {
    return request.verb == "apply" ? absl::UnavailableError("down") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(nodes_.Reconcile("a", {}).status()));
}

}  // namespace
}  // namespace cachewarm::controllers
