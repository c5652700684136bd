// SPDX-License-Identifier: Apache-2.0
#include "lib/api/node_cache.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "tests/unit/lib/api/samples.h"

namespace cachewarm::api {
namespace {

using codec::Json;

Json FullObject() {
  Json object = MinimalNodeCache();
  object["spec"] = EncodeSpec(FullNodeCacheSpec());
  object["status"] = EncodeStatus(FullNodeCacheStatus());
  return object;
}

TEST(NodeCache, MetadataAndOwningNodeAreDecoded) {
  Json object = MinimalNodeCache();
  object["metadata"]["uid"] = "1";
  object["metadata"]["ownerReferences"] = {{{"kind", "ConfigMap"}, {"uid", "2"}},
                                           {{"kind", "Node"}, {"uid", "3"}}};
  const auto cache = DecodeNodeCache(object);
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_EQ(cache->name, "node-a");
  EXPECT_EQ(cache->uid, "1");
  EXPECT_EQ(cache->node_uid, "3");
}

TEST(NodeCache, FullSpecReadsBackAsItWasWritten) {
  const auto cache = DecodeNodeCache(FullObject());
  ASSERT_TRUE(cache.ok()) << cache.status();
  const NodeCacheSpec full = FullNodeCacheSpec();
  EXPECT_EQ(cache->spec.warmups, full.warmups);
  EXPECT_EQ(cache->spec.captures, full.captures);
  EXPECT_EQ(cache->spec.starts, full.starts);
}

TEST(NodeCache, FullStatusReadsBackAsItWasWritten) {
  const auto cache = DecodeNodeCache(FullObject());
  ASSERT_TRUE(cache.ok()) << cache.status();
  EXPECT_EQ(cache->status, FullNodeCacheStatus());
}

TEST(NodeCache, EmptyPartsEncodeAsEmptyObjects) {
  EXPECT_EQ(EncodeSpec(NodeCacheSpec{}), Json::object());
  EXPECT_EQ(EncodeStatus(NodeCacheStatus{}), Json::object());
  const auto cache = DecodeNodeCache(MinimalNodeCache());
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->status, NodeCacheStatus{});
}

TEST(NodeCache, SummaryHasHumanReadableBytes) {
  struct Case {
    int64_t bytes;
    std::string text;
  };
  const Case cases[] = {
      {0, "0"},
      {1023, "1023"},
      {1024, "1.0Ki"},
      {1536, "1.5Ki"},
      {10 * 1024, "10Ki"},
      {1024 * 1024 - 1, "1.0Mi"},
      {int64_t{1400} << 20, "1.4Gi"},
      {int64_t{212} << 30, "212Gi"},
      {int64_t{5} << 50, "5.0Pi"},
  };
  for (const Case& each : cases) {
    NodeCacheStatus status;
    status.node.root.path = "/var/lib/cachewarm";
    status.node.root.used_bytes = each.bytes;
    EXPECT_EQ(EncodeStatus(status)["summary"]["used"], each.text);
  }
}

TEST(NodeCache, PathPartsCannotLeaveTheRoot) {
  struct Case {
    const char* pointer;
    Json value;
    std::string message;
  };
  const Case cases[] = {
      {"/spec/warmups/0/namespace", "..",
       "spec.warmups[0].namespace: expected a DNS label of at most 63 characters"},
      {"/spec/warmups/0/name", "../x", "spec.warmups[0].name: expected a Kubernetes object name"},
      {"/spec/warmups/0/name", "..", "spec.warmups[0].name: expected a Kubernetes object name"},
      {"/spec/warmups/0/uid", "a/b", "spec.warmups[0].uid: expected a uid"},
      {"/spec/warmups/0/runAs/0", "u0/../..",
       "spec.warmups[0].runAs: expected \"image\" or \"u<uid>\""},
      {"/spec/warmups/0/caches/0/path", "..",
       "spec.warmups[0].caches[0].path: expected a relative path of [A-Za-z0-9._-] segments "
       "other than . and .."},
      {"/spec/warmups/0/bundles/0/key", "../k",
       "spec.warmups[0].bundles[0].key: expected 64 lower-case hex digits"},
      {"/spec/captures/0/id", ".", "spec.captures[0].id: expected a uid"},
      {"/spec/captures/0/warmupUID", "..", "spec.captures[0].warmupUID: expected a uid"},
      {"/spec/captures/0/runAs", "root",
       "spec.captures[0].runAs: expected \"image\" or \"u<uid>\""},
      {"/spec/starts/0/runAs", "", "spec.starts[0].runAs: is required"},
  };
  for (const Case& each : cases) {
    Json object = FullObject();
    object[Json::json_pointer(each.pointer)] = each.value;
    EXPECT_EQ(DecodeNodeCache(object).status().message(), each.message);
  }
}

TEST(NodeCache, ListsOverTheirLimitAreRejected) {
  for (const char* name : {"warmups", "captures", "starts"}) {
    Json object = FullObject();
    Json& list = object["spec"][name];
    const Json item = list[0];
    for (int i = 0; i < 257; ++i) {
      list.push_back(item);
    }
    EXPECT_EQ(DecodeNodeCache(object).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(NodeCache, DigestsOfOtherAlgorithmsAreRejected) {
  Json object = FullObject();
  object["spec"]["warmups"][0]["bundles"][0]["digest"] = "sha512:" + std::string(128, 'a');
  EXPECT_FALSE(DecodeNodeCache(object).ok());
  object["spec"]["warmups"][0]["bundles"][0].erase("digest");
  EXPECT_EQ(DecodeNodeCache(object).status().message(),
            "spec.warmups[0].bundles[0].digest: is required");
}

TEST(NodeCache, EnumValuesMatchTheSchema) {
  EXPECT_EQ(Name(BundleState::kActive), "Active");
  EXPECT_EQ(Name(CaptureState::kPushed), "Pushed");
}

}  // namespace
}  // namespace cachewarm::api
