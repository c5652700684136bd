// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

// API objects for the tests of operator/, with the minimum of required fields.
namespace cachewarm::op::testing {

inline codec::Json FromYaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

inline codec::Json NodeObject(const std::string& name, const std::string& uid) {
  codec::Json node = FromYaml(R"(
apiVersion: v1
kind: Node
metadata: {labels: {kubernetes.io/os: linux}}
spec: {}
status:
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {operatingSystem: linux}
)");
  node["metadata"]["name"] = name;
  node["metadata"]["uid"] = uid;
  node["metadata"]["labels"]["kubernetes.io/hostname"] = name;
  return node;
}

inline codec::Json PodObject(const std::string& name) {
  codec::Json pod = FromYaml(R"(
apiVersion: v1
kind: Pod
metadata:
  namespace: default
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: llama, pod-template-hash: aaa}
spec:
  containers:
  - name: server
    image: registry/llama:1
    resources: {requests: {cpu: "1", memory: 1Gi}}
status: {phase: Pending}
)");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = "uid-" + name;
  return pod;
}

// ownerReferences with one controller.
inline codec::Json OwnedBy(const std::string& api_version, const std::string& kind,
                           const std::string& name) {
  return codec::Json::array({{{"apiVersion", api_version},
                              {"kind", kind},
                              {"name", name},
                              {"uid", "uid-" + name},
                              {"controller", true}}});
}

inline codec::Json HeldPodObject(const std::string& name, const std::string& warmup) {
  codec::Json pod = PodObject(name);
  pod["metadata"]["annotations"][std::string(api::kWarmupAnnotation)] = warmup;
  pod["spec"]["schedulingGates"] = {{{"name", std::string(api::kSchedulingGate)}}};
  return pod;
}

inline codec::Json DeploymentObject(const std::string& name) {
  codec::Json deployment = FromYaml(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: llama}}
  template:
    metadata: {labels: {app: llama}}
    spec:
      containers:
      - name: server
        image: registry/llama:1
        resources: {requests: {cpu: "1", memory: 1Gi}}
status: {replicas: 2, readyReplicas: 2}
)");
  deployment["metadata"]["name"] = name;
  deployment["metadata"]["uid"] = "uid-" + name;
  return deployment;
}

// A warmup of Deployment `name`, injecting.
inline codec::Json WarmupObject(const std::string& name) {
  codec::Json warmup = FromYaml(R"(
apiVersion: cachewarm.io/v1alpha1
kind: CacheWarmup
metadata:
  namespace: default
  generation: 1
  creationTimestamp: "2026-01-01T00:00:00Z"
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment}
)");
  warmup["metadata"]["name"] = name;
  warmup["metadata"]["uid"] = "uid-" + name;
  warmup["metadata"]["labels"][std::string(api::kInjectLabel)] = "true";
  warmup["spec"]["workloadRef"]["name"] = name;
  return warmup;
}

inline codec::Json NamespaceObject(const std::string& name) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Namespace"},
      {"metadata", {{"name", name}, {"uid", "uid-" + name}, {"labels", codec::Json::object()}}}};
}

inline codec::Json OptedInNamespaceObject(const std::string& name) {
  codec::Json ns = NamespaceObject(name);
  ns["metadata"]["labels"]["cachewarm.io/warm"] = "true";
  return ns;
}

inline codec::Json NodeCacheObject(const std::string& node, const std::string& node_uid) {
  return {{"apiVersion", std::string(api::kApiVersion)},
          {"kind", "NodeCache"},
          {"metadata",
           {{"name", node},
            {"uid", "uid-cache-" + node},
            {"ownerReferences",
             codec::Json::array(
                 {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}}})}}}};
}

}  // namespace cachewarm::op::testing
