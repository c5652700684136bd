// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/world/generated.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_items.h"
#include "lib/codec/json_value.h"

namespace cachewarm::bench {
namespace {

using codec::Json;

constexpr char kGpuType[] = "nvidia/h100-80gb-hbm3/sm_90";
constexpr char kCpuClass[] = "x86-64-v4/amd-25-17/5c0d9f21";
constexpr int64_t kBundleBytes = int64_t{1} << 28;

std::string NodeName(int number) {
  return fmt::format("pool-h100-{:05}.eu-west-1.compute.internal", number);
}

std::string Uid(std::string_view kind, int number) {
  const std::string hex = DigestOf(fmt::format("{}{}", kind, number)).hex();
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20, 12));
}

std::string Time(int seconds) {
  return fmt::format("2026-11-20T{:02}:{:02}:{:02}Z", seconds / 3600 % 24, seconds / 60 % 60,
                     seconds % 60);
}

std::string WarmupName(int number) {
  return fmt::format("llama-{:02}", number);
}

Json Meta(std::string_view kind, const std::string& name, int number) {
  return {{"name", name},
          {"uid", Uid(kind, number)},
          {"resourceVersion", std::to_string(1'000'000 + number)},
          {"creationTimestamp", Time(number)},
          {"generation", 3}};
}

// Has the size of the entry of an object of which two managers write `fields` fields.
Json ManagedFields(int fields) {
  Json list = Json::array();
  for (const char* manager : {"kube-controller-manager", "kubelet"}) {
    Json owned;
    for (int i = 0; i < fields / 2; ++i) {
      owned["f:spec"][fmt::format("f:field-{}", i)] = Json::object();
    }
    list.push_back({{"manager", manager}, {"operation", "Update"}, {"fieldsV1", owned}});
  }
  return list;
}

std::string Query(const std::string& query, const std::string& name) {
  const size_t at = ("&" + query).find("&" + name + "=");
  return at == std::string::npos
             ? std::string()
             : query.substr(at + name.size() + 1, query.find('&', at) - at - name.size() - 1);
}

int NumberOf(const std::string& text) {
  return text.empty() ? 0 : std::atoi(text.c_str());
}

Json Condition(const char* type, int number) {
  return {{"type", type},
          {"status", "True"},
          {"reason", "Made"},
          {"lastHeartbeatTime", Time(number)},
          {"lastTransitionTime", Time(number / 10)}};
}

}  // namespace

Json GeneratedCluster::Node(int number) const {
  Json node = {{"metadata", Meta("node", NodeName(number), number)}};
  Json& labels = node["metadata"]["labels"];
  labels["kubernetes.io/hostname"] = NodeName(number);
  labels["kubernetes.io/os"] = "linux";
  for (int i = 0; i < 20; ++i) {
    labels[fmt::format("nvidia.com/gpu.fact-{:02}", i)] = fmt::format("value-{}", i);
  }
  node["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed"] = "true";
  node["metadata"]["managedFields"] = ManagedFields(60);
  node["status"] = {
      {"allocatable",
       {{"cpu", "191450m"}, {"memory", "2063937Mi"}, {"pods", "110"}, {"nvidia.com/gpu", "8"}}},
      {"nodeInfo", {{"operatingSystem", "linux"}, {"kubeletVersion", "v1.36.1"}}},
      {"conditions", {Condition("Ready", number), Condition("MemoryPressure", number)}}};
  for (int i = 0; i < 30; ++i) {
    node["status"]["images"].push_back(
        {{"names", {fmt::format("registry/image-{}@sha256:{}", i, std::string(64, 'a'))}},
         {"sizeBytes", 1 << i}});
  }
  return node;
}

// The first pods are agents, one per node.
Json GeneratedCluster::Pod(int number) const {
  const bool agent = number < size_.nodes;
  const int of = number - size_.nodes;
  const int warmup = agent ? 0 : of % size_.warmups;
  const std::string app = agent ? std::string("cachewarm-agent") : WarmupName(warmup);
  Json pod = {{"metadata", Meta("pod", fmt::format("{}-7c6d9f8b5-{:05}", app, number), number)}};
  Json& meta = pod["metadata"];
  meta["namespace"] = agent ? "cachewarm-system" : "serving";
  meta["labels"] = {{"app", app}, {"pod-template-hash", "7c6d9f8b5"}};
  meta["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                              {"kind", "ReplicaSet"},
                              {"name", app + "-7c6d9f8b5"},
                              {"uid", Uid("rs", warmup)},
                              {"controller", true}}};
  meta["managedFields"] = ManagedFields(80);
  pod["spec"] = {{"nodeName", NodeName(number % size_.nodes)}};
  Json server = {{"name", "server"},
                 {"image", "registry.example.com/vllm/vllm-openai:v0.11.0"},
                 {"resources", {{"requests", {{"cpu", "4"}, {"memory", "32Gi"}}}}}};
  for (int i = 0; i < 20; ++i) {
    server["env"].push_back({{"name", fmt::format("SETTING_{}", i)}, {"value", "some value"}});
  }
  pod["spec"]["containers"] = {server};
  if (agent) {
    meta["labels"]["app.kubernetes.io/component"] = "agent";
  } else {
    meta["annotations"][std::string(api::kWarmupAnnotation)] = app;
    pod["spec"]["volumes"] = {
        {{"name", std::string(api::kVolume)},
         {"hostPath", {{"path", fmt::format("/var/lib/cachewarm/serving/{}/image", app)}}}}};
  }
  pod["status"] = {
      {"phase", "Running"},
      {"podIP", fmt::format("10.{}.{}.{}", number >> 16U, number >> 8U & 255, number & 255)},
      {"startTime", Time(number)},
      {"conditions",
       {Condition("Ready", number), Condition("ContainersReady", number),
        Condition("PodScheduled", number)}},
      {"containerStatuses",
       {{{"name", "server"},
         {"ready", true},
         {"started", true},
         {"restartCount", 0},
         {"containerID", "containerd://" + std::string(64, 'c')},
         {"state", {{"running", {{"startedAt", Time(number)}}}}}}}}};
  return pod;
}

Json GeneratedCluster::Deployment(int number) const {
  const std::string name = WarmupName(number);
  Json object = {{"metadata", Meta("deployment", name, number)}};
  object["metadata"]["namespace"] = "serving";
  const Json labels = {{"app", name}};
  object["spec"] = {{"replicas", size_.pods / size_.warmups},
                    {"selector", {{"matchLabels", labels}}}};
  object["spec"]["template"] = {
      {"metadata", {{"labels", labels}}},
      {"spec",
       {{"containers",
         {{{"name", "server"},
           {"image", "registry.example.com/vllm/vllm-openai:v0.11.0"},
           {"resources", {{"requests", {{"cpu", "4"}, {"memory", "32Gi"}}}}}}}}}}};
  object["status"] = {{"replicas", size_.pods / size_.warmups},
                      {"availableReplicas", size_.pods / size_.warmups}};
  return object;
}

Json GeneratedCluster::Warmup(int number) const {
  const std::string name = WarmupName(number);
  Json object = {{"metadata", Meta("warmup", name, number)}};
  object["metadata"]["namespace"] = "serving";
  object["metadata"]["labels"][std::string(api::kInjectLabel)] = "true";
  object["spec"]["workloadRef"] = {
      {"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", name}};
  object["status"]["injection"] = {{"labels", {{"app", name}}}, {"container", "server"}};
  return object;
}

Json GeneratedCluster::NodeCache(int number) const {
  Json object = {{"metadata", Meta("cache", NodeName(number), number)}};
  object["metadata"]["ownerReferences"] = {{{"apiVersion", "v1"},
                                            {"kind", "Node"},
                                            {"name", NodeName(number)},
                                            {"uid", Uid("node", number)}}};
  object["metadata"]["managedFields"] = ManagedFields(20 * size_.warmups);
  Json requested = Json::array();
  Json reported = Json::array();
  for (int i = 0; i < size_.warmups; ++i) {
    const std::string digest = "sha256:" + DigestOf(WarmupName(i)).hex();
    requested.push_back({{"uid", Uid("warmup", i)},
                         {"namespace", "serving"},
                         {"name", WarmupName(i)},
                         {"runAs", {"image"}},
                         {"bundles",
                          {{{"key", DigestOf("key" + WarmupName(i)).hex()},
                            {"digest", digest},
                            {"bytes", kBundleBytes}}}},
                         // 32 nodes have a fetch slot at a time.
                         {"fetchGrantedTime", Time(number / 32 * 5 + i)}});
    reported.push_back({{"uid", Uid("warmup", i)},
                        {"prepared", {"image"}},
                        {"generation", DigestOf("generation" + WarmupName(i)).hex().substr(0, 16)},
                        {"bundles",
                         {{{"digest", digest},
                           {"state", "Active"},
                           {"bytesDone", kBundleBytes},
                           {"fetchSeconds", 1 + (number * 7919 + i) % 10'000 / 1000.0}}}}});
  }
  object["spec"]["warmups"] = std::move(requested);
  object["status"] = {{"heartbeatTime", Time(number)},
                      {"node",
                       {{"gpuType", kGpuType},
                        {"cpuClass", kCpuClass},
                        {"devices", 8},
                        {"driver", "580.65.06"},
                        {"agentVersion", "0.1.0"},
                        {"root",
                         {{"path", "/var/lib/cachewarm"},
                          {"writable", true},
                          {"executable", true},
                          {"usedBytes", int64_t{7919} * number},
                          {"freeBytes", int64_t{104'729} * number}}}}},
                      {"warmups", std::move(reported)}};
  return object;
}

GeneratedCluster::Kind GeneratedCluster::KindOf(const kube::Request& request) const {
  const auto made_by = [this](Json (GeneratedCluster::*make)(int) const, int count) {
    return Kind{.count = count, .make = [this, make](int number) { return (this->*make)(number); }};
  };
  if (request.resource == "nodes") {
    return made_by(&GeneratedCluster::Node, size_.nodes);
  }
  if (request.resource == "nodecaches") {
    return made_by(&GeneratedCluster::NodeCache, size_.nodes);
  }
  if (request.resource == "pods") {
    return made_by(&GeneratedCluster::Pod, size_.nodes + size_.pods);
  }
  if (request.resource == "deployments") {
    return made_by(&GeneratedCluster::Deployment, size_.warmups);
  }
  if (request.resource == "cachewarmups") {
    return made_by(&GeneratedCluster::Warmup, size_.warmups);
  }
  return {};
}

std::string GeneratedCluster::Page(const kube::Request& request) const {
  const Kind kind = KindOf(request);
  const int from = NumberOf(Query(request.query, "continue"));
  const int limit = NumberOf(Query(request.query, "limit"));
  const int to = std::min(kind.count, from + limit);
  std::string text = R"({"kind":"List","metadata":{"resourceVersion":"9000000","continue":")";
  text += to < kind.count ? std::to_string(to) : std::string();
  text += R"("},"items":[)";
  for (int i = from; i < to; ++i) {
    text += (i == from ? "" : ",") + codec::DumpJson(kind.make(i));
  }
  return text + "]}";
}

absl::StatusOr<Json> GeneratedCluster::Do(const kube::Request& request, std::stop_token) {
  if (request.path.starts_with("/apis/") && request.verb != "list") {
    return Json{{"kind", "APIResourceList"}, {"resources", Json::array()}};
  }
  return codec::ParseJson(Page(request));
}

absl::StatusOr<Json> GeneratedCluster::DoList(const kube::Request& request,
                                              const ItemHandler& on_item, std::stop_token) {
  return codec::ParseJsonItems(Page(request), {.list = "items", .unread = "managedFields"},
                               on_item);
}

absl::Status GeneratedCluster::Watch(const kube::Request&, const kube::WatchEventHandler&,
                                     std::stop_token stop) {
  SleepFor(SystemClock(), std::chrono::hours(1), stop);
  return absl::OkStatus();
}

}  // namespace cachewarm::bench
