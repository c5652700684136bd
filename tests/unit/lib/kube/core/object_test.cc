// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/object.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

TEST(ObjectName, RoundTripsThroughKey) {
  for (const ObjectName& name : {ObjectName{"a", "b"}, ObjectName{"", "node-1.example"}}) {
    const auto parsed = ObjectName::Parse(name.ToString());
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, name);
  }
}

TEST(ObjectName, RejectsMalformedKeys) {
  for (const char* key : {"", "/", "a/", "/b", "a/b/c", "a//b"}) {
    EXPECT_EQ(ObjectName::Parse(key).status().code(), absl::StatusCode::kInvalidArgument) << key;
  }
}

TEST(Object, ReadsMetadataOfAnyShape) {
  const Json object = Json::parse(R"({"metadata": {
    "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7",
    "labels": {"x": "1", "y": 2}, "annotations": {"z": "3"},
    "deletionTimestamp": "2026-01-01T00:00:00Z"}})");
  EXPECT_EQ(NameOf(object), (ObjectName{"b", "a"}));
  EXPECT_EQ(UidOf(object), "u");
  EXPECT_EQ(ResourceVersionOf(object), "7");
  EXPECT_EQ(LabelsOf(object), (std::map<std::string, std::string>{{"x", "1"}}));
  EXPECT_EQ(AnnotationsOf(object), (std::map<std::string, std::string>{{"z", "3"}}));
  EXPECT_TRUE(IsDeleting(object));
}

TEST(Object, AbsentOrMistypedMembersReadAsEmpty) {
  for (const char* text : {"null", "[]", "3", "\"x\"", "{}", R"({"metadata": null})",
                           R"({"metadata": []})", R"({"metadata": {"name": 3, "labels": [1]}})"}) {
    const Json object = Json::parse(text);
    EXPECT_EQ(NameOf(object), ObjectName()) << text;
    EXPECT_TRUE(LabelsOf(object).empty()) << text;
    EXPECT_FALSE(IsDeleting(object)) << text;
    EXPECT_EQ(ControllerOf(object).uid, "") << text;
  }
}

TEST(Object, ControllerOfIgnoresOtherOwners) {
  const Json object = Json::parse(R"({"metadata": {"ownerReferences": [
    {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true},
    "noise", {"kind": "X", "controller": "true"}]}})");
  const Owner owner = ControllerOf(object);
  EXPECT_EQ(owner.kind, "ReplicaSet");
  EXPECT_EQ(owner.name, "r");
  EXPECT_EQ(owner.uid, "2");
  EXPECT_EQ(owner.api_version, "apps/v1");
}

}  // namespace
}  // namespace cachewarm::kube
