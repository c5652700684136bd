// SPDX-License-Identifier: Apache-2.0
#include "lib/api/kubernetes.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

using codec::Json;

// Written by a kubelet 1.36, reduced to the relevant fields.
Json RealNode() {
  return *codec::ParseJson(R"({
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "node-a", "uid": "0d4b", "resourceVersion": "731",
      "creationTimestamp": "2026-11-21T08:00:05Z",
      "labels": {"kubernetes.io/hostname": "node-a", "kubernetes.io/os": "linux"},
      "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
    "spec": {"podCIDR": "10.244.1.0/24", "unschedulable": true,
      "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
                 {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
                  "timeAdded": "2026-11-21T08:00:06Z"}]},
    "status": {
      "capacity": {"cpu": "96", "memory": "1056123456Ki"},
      "allocatable": {"cpu": "95500m", "ephemeral-storage": "46321340Ki", "memory": "1056021056Ki",
                      "nvidia.com/gpu": "8", "pods": "110"},
      "conditions": [
        {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
        {"type": "Ready", "status": "True", "reason": "KubeletReady"}],
      "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64",
                   "bootID": "1f2e3d4c-1111-2222-3333-444455556666"}}})");
}

TEST(Node, DecodesAKubeletsObject) {
  const auto node = DecodeNode(RealNode());
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->meta.name, "node-a");
  EXPECT_EQ(node->meta.uid, "0d4b");
  EXPECT_EQ(node->meta.resource_version, "731");
  EXPECT_EQ(FormatTime(node->meta.created), "2026-11-21T08:00:05Z");
  EXPECT_EQ(node->meta.labels.find("kubernetes.io/hostname")->second, "node-a");
  EXPECT_TRUE(node->ready);
  EXPECT_TRUE(node->unschedulable);
  EXPECT_EQ(node->os, "linux");
  EXPECT_EQ(node->boot_id, "1f2e3d4c-1111-2222-3333-444455556666");
  ASSERT_EQ(node->taints.size(), 2U);
  EXPECT_EQ(node->taints[0].value, "present");
  EXPECT_EQ(node->taints[1].value, "");
  EXPECT_EQ(node->taints[1].effect, "NoSchedule");
  EXPECT_EQ(node->allocatable.at("cpu"), 95500);
  EXPECT_EQ(node->allocatable.at("memory"), int64_t{1056021056} * 1024);
  EXPECT_EQ(node->allocatable.at("nvidia.com/gpu"), 8);
  EXPECT_EQ(node->allocatable.at("pods"), 110);
}

TEST(Node, IsNotReadyWithoutACondition) {
  for (const char* status : {"False", "Unknown"}) {
    Json node = RealNode();
    node["status"]["conditions"][1]["status"] = status;
    EXPECT_FALSE(DecodeNode(node)->ready) << status;
  }
  Json silent = RealNode();
  silent.erase("status");
  const auto node = DecodeNode(silent);
  ASSERT_TRUE(node.ok());
  EXPECT_FALSE(node->ready);
  EXPECT_EQ(node->os, "linux");
}

TEST(Node, HasItsReadyTime) {
  Json node = RealNode();
  node["status"]["conditions"] = *codec::ParseJson(R"([
    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:05Z"}])");
  const auto decoded = DecodeNode(node);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(FormatTime(decoded->ready_since), "2026-11-21T08:00:05Z");
  node["status"]["conditions"] = *codec::ParseJson(R"([
    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T08:00:05Z"}])");
  EXPECT_EQ(DecodeNode(node)->ready_since, WallTime{});
}

TEST(ResourceSlice, HasPoolAndAttributes) {
  // As NVIDIA's driver 25.12 published it for a node with H100 GPUs, shortened.
  const Json object = *codec::ParseJson(R"({
    "spec": {"driver": "gpu.nvidia.com", "nodeName": "a",
             "pool": {"name": "a", "generation": 3, "resourceSliceCount": 1},
             "devices": [{"name": "gpu-1",
                          "attributes": {"architecture": {"string": "Hopper"},
                                         "cudaComputeCapability": {"version": "9.0.0"},
                                         "productName": {"string": "NVIDIA H100 80GB HBM3"}},
                          "capacity": {"memory": {"value": "81559Mi"}}},
                         {"name": "imex"}]}})");
  const auto slice = DecodeResourceSlice(object);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->driver, "gpu.nvidia.com");
  EXPECT_EQ(slice->node, "a");
  EXPECT_EQ(slice->pool, "a");
  EXPECT_EQ(slice->pool_generation, 3);
  ASSERT_EQ(slice->devices.size(), 2U);
  EXPECT_EQ(slice->devices[0].product, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(slice->devices[0].compute_capability, "9.0.0");
  EXPECT_EQ(slice->devices[1].product, "");
}

TEST(ResourceSlice, OfAnotherShapeIsRejected) {
  for (const char* text :
       {R"({"spec": 7})", R"({"spec": {"devices": {}}})", R"({"spec": {"driver": 1}})",
        R"({"spec": {"devices": [{"attributes": {"productName": {"string": 1}}}]}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeResourceSlice(*codec::ParseJson(text)).status()))
        << text;
  }
}

TEST(Node, HasItsOperatingSystem) {
  Json node = RealNode();
  node["status"]["nodeInfo"]["operatingSystem"] = "windows";
  EXPECT_EQ(DecodeNode(node)->os, "windows");
}

TEST(Node, PlainNumbersAreQuantities) {
  Json node = RealNode();
  node["status"]["allocatable"]["pods"] = 250;
  EXPECT_EQ(DecodeNode(node)->allocatable.at("pods"), 250);
}

TEST(Node, WrongTypesAreNamedByTheirPath) {
  struct Case {
    const char* pointer;
    Json value;
    std::string message;
  };
  const Case cases[] = {
      {"/spec/unschedulable", "yes", "spec.unschedulable: expected true or false"},
      {"/spec/taints/0/key", 7, "spec.taints[0].key: expected a string"},
      {"/status/conditions", 7, "status.conditions: expected a list of at most 4096 items"},
      {"/status/conditions/0", 7, "status.conditions[0]: expected an object"},
      {"/metadata/labels", Json::array(),
       "metadata.labels: expected a map of at most 4096 strings"},
      {"/metadata/creationTimestamp", "yesterday",
       "metadata.creationTimestamp: \"yesterday\" is not an RFC 3339 time such as "
       "2026-01-31T12:00:00Z"},
      {"/status/allocatable/cpu", "many",
       "status.allocatable.cpu: \"many\" is not a Kubernetes quantity such as 500m, 4, 16Gi or "
       "1e9"},
      {"/status/allocatable/cpu", Json::object(),
       "status.allocatable.cpu: \"{}\" is not a Kubernetes quantity such as 500m, 4, 16Gi or 1e9"},
  };
  for (const Case& each : cases) {
    Json node = RealNode();
    node[Json::json_pointer(each.pointer)] = each.value;
    EXPECT_EQ(DecodeNode(node).status().message(), each.message);
  }
}

TEST(Meta, HasIdentityAndDeletion) {
  const Json object = *codec::ParseJson(R"({"metadata": {"name": "p", "namespace": "default",
    "deletionTimestamp": "2026-11-21T08:00:05Z", "generation": 4}})");
  const auto meta = DecodeMeta(object);
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->ns, "default");
  EXPECT_EQ(meta->generation, 4);
  EXPECT_TRUE(meta->deleting);
}

TEST(Meta, IsRequiredWithAName) {
  EXPECT_EQ(DecodeMeta(Json::object()).status().message(), "metadata: is required");
  EXPECT_EQ(DecodeMeta({{"metadata", Json::object()}}).status().message(),
            "metadata.name: is required");
  EXPECT_EQ(DecodeMeta(Json::array()).status().message(), "document: expected an object");
  EXPECT_EQ(DecodeNode(Json("node")).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cachewarm::api
