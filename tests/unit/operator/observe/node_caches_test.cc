// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/node_caches.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "tests/fakes/memory_log.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

std::string DigestText(char digit) {
  return "sha256:" + std::string(64, digit);
}

Json Told(const std::string& uid, const std::string& name, char digit) {
  return {{"uid", uid},
          {"namespace", "default"},
          {"name", name},
          {"bundles",
           Json::array(
               {{{"key", std::string(64, digit)}, {"digest", DigestText(digit)}, {"bytes", 7}}})}};
}

Json Says(const std::string& uid, const std::string& state, char digit) {
  return {{"uid", uid},
          {"bundles", Json::array({{{"digest", DigestText(digit)}, {"state", state}}})}};
}

class NodeCachesTest : public testing::Test {
 protected:
  void Put(const Json& object) { caches.Apply(store.Put(object).Unpack()); }
  void Remove(const std::string& name) { caches.Apply(store.Remove({.name = name}).Unpack()); }
  Json NodeCache(const std::string& node, const Json& told, const Json& says) {
    Json object = op::testing::NodeCacheObject(node, "uid-" + node);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    object["spec"]["warmups"] = told;
    object["status"] = {{"heartbeatTime", "2026-01-01T00:00:00Z"},
                        {"node", {{"gpuType", "cpu"}, {"cpuClass", "x86"}}},
                        {"warmups", says}};
    return object;
  }
  static std::set<std::string> UidsOf(const NodeCaches::Value& value) {
    std::set<std::string> uids;
    for (const api::WantedWarmup& each : value->spec.warmups) {
      uids.insert(each.uid);
    }
    return uids;
  }

  kube::Store store;
  fakes::MemoryLog log;
  NodeCaches caches{store, log};
  int version_ = 0;
};

TEST_F(NodeCachesTest, TheShareOfAWarmupIsItsEntriesAndAllThatIsTheNodes) {
  Json object = NodeCache("a", Json::array({Told("u1", "one", '1'), Told("u2", "two", '2')}),
                          Json::array({Says("u1", "Active", '1'), Says("u2", "Active", '2')}));
  object["spec"]["starts"] = {{{"podUID", "p"}, {"warmupUID", "u2"}, {"runAs", "image"}}};
  object["status"]["starts"] = {{{"podUID", "p"}, {"result", "hit"}}};
  Put(object);
  const auto share = caches.ShareOf("u1", "a");
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(UidsOf(share), std::set<std::string>{"u1"});
  ASSERT_EQ(share->status.warmups.size(), 1U);
  EXPECT_EQ(share->status.warmups[0].bundles[0].state, api::BundleState::kActive);
  EXPECT_EQ(share->name, "a");
  EXPECT_EQ(share->node_uid, "uid-a");
  EXPECT_EQ(share->status.node.cpu_class, "x86");
  EXPECT_NE(share->status.heartbeat, WallTime{});
  EXPECT_EQ(share->spec.starts.size(), 1U) << "room is counted over all warmups";
  EXPECT_EQ(share->status.starts.size(), 1U);
  EXPECT_EQ(UidsOf(caches.Get("a")), (std::set<std::string>{"u1", "u2"}));
}

TEST_F(NodeCachesTest, AnotherWarmupsEntryIsThereWhileItsAgentOwesAnAnswer) {
  const Json told = Json::array({Told("u1", "one", '1'), Told("u2", "two", '2')});
  Put(NodeCache("a", told, Json::array({Says("u1", "Active", '1')})));
  EXPECT_EQ(UidsOf(caches.ShareOf("u1", "a")), (std::set<std::string>{"u1", "u2"}));
  Put(NodeCache("a", told, Json::array({Says("u1", "Active", '1'), Says("u2", "Fetching", '2')})));
  EXPECT_EQ(UidsOf(caches.ShareOf("u1", "a")), (std::set<std::string>{"u1", "u2"}));
  Put(NodeCache("a", told, Json::array({Says("u1", "Active", '1'), Says("u2", "Failed", '2')})));
  EXPECT_EQ(UidsOf(caches.ShareOf("u1", "a")), std::set<std::string>{"u1"});
  Put(NodeCache("a", told, Json::array({Says("u1", "Active", '1'), Says("u2", "Active", '3')})));
  EXPECT_EQ(UidsOf(caches.ShareOf("u1", "a")), (std::set<std::string>{"u1", "u2"}))
      << "an answer about another bundle is none";
}

// It keeps its turn, and the turns of all warmups are counted together.
TEST_F(NodeCachesTest, AnotherWarmupsEntryIsThereWhileTheStoreFailsIt) {
  Json says = Says("u2", "Failed", '2');
  says["bundles"][0]["reason"] = "FetchFailed";
  Put(NodeCache("a", Json::array({Told("u1", "one", '1'), Told("u2", "two", '2')}),
                Json::array({says})));
  EXPECT_EQ(UidsOf(caches.ShareOf("u1", "a")), (std::set<std::string>{"u1", "u2"}));
}

TEST_F(NodeCachesTest, AWarmupWithoutEntriesHasTheNodeAllTheSame) {
  Put(NodeCache("a", Json::array({Told("u1", "one", '1')}),
                Json::array({Says("u1", "Active", '1')})));
  const auto share = caches.ShareOf("u9", "a");
  ASSERT_NE(share, nullptr);
  EXPECT_TRUE(share->spec.warmups.empty());
  EXPECT_EQ(caches.ShareOf("u1", "b"), nullptr);
  EXPECT_EQ(caches.CountOf("a"), 1U);
  EXPECT_EQ(caches.CountOf("b"), 0U);
  EXPECT_EQ(caches.Get("b"), nullptr);
}

TEST_F(NodeCachesTest, KnowsWhichWarmupsAreNamedWhileSomeNodeNamesThem) {
  Put(NodeCache("a", Json::array({Told("u1", "one", '1'), Told("u2", "two", '2')}), Json::array()));
  Put(NodeCache("b", Json::array({Told("u1", "one", '1'), Told("old", "one", '1')}),
                Json::array()));
  EXPECT_EQ(caches.UidsOf("default", "one"), (std::vector<std::string>{"old", "u1"}));
  EXPECT_EQ(caches.UidsOf("default", "two"), std::vector<std::string>{"u2"});
  EXPECT_TRUE(caches.UidsOf("default", "tw").empty());
  EXPECT_TRUE(caches.UidsOf("prod", "one").empty());
  EXPECT_EQ(caches.Named().size(), 3U);
  Put(NodeCache("b", Json::array({Told("u1", "one", '1')}), Json::array()));
  EXPECT_EQ(caches.UidsOf("default", "one"), std::vector<std::string>{"u1"});
  Remove("a");
  EXPECT_EQ(caches.UidsOf("default", "one"), std::vector<std::string>{"u1"});
  EXPECT_TRUE(caches.UidsOf("default", "two").empty());
  Remove("b");
  EXPECT_TRUE(caches.Named().empty());
}

TEST_F(NodeCachesTest, WhatIsNotUnderstoodIsLeftOutAndLoggedOncePerVersion) {
  Json odd = NodeCache("a", Json::array({{{"uid", 7}}}), Json::array());
  Put(odd);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(caches.Get("a"), nullptr);
  }
  EXPECT_EQ(log.warnings().size(), 1U);
  EXPECT_NE(caches.ShareOf("u1", "a"), nullptr) << "an odd entry of another is not looked at";
  odd["metadata"]["resourceVersion"] = "99";
  Put(odd);
  EXPECT_EQ(caches.Get("a"), nullptr);
  EXPECT_EQ(log.warnings().size(), 2U);
}

}  // namespace
}  // namespace cachewarm::observe
