// SPDX-License-Identifier: Apache-2.0
#include "operator/render/apply_overrides.h"

#include <gtest/gtest.h>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Yaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

// Template of a workload whose pods have some privileges.
constexpr char kTemplate[] = R"(
metadata: {labels: {app: llama}, annotations: {team: x}}
spec:
  serviceAccountName: llama
  securityContext: {runAsUser: 1000}
  nodeSelector: {gpu: h100}
  tolerations: [{key: gpu, operator: Exists}]
  initContainers:
  - {name: proxy, image: "proxy:1", restartPolicy: Always, resources: {limits: {cpu: "1"}}}
  containers:
  - name: server
    image: llama:1
    command: [serve]
    args: [--model, llama]
    securityContext: {allowPrivilegeEscalation: false}
    env:
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
    - {name: LEVEL, value: info}
    resources: {limits: {nvidia.com/gpu: 1}}
    volumeMounts: [{name: models, mountPath: /models, readOnly: true}]
  - name: driver
    image: driver:1
    resources:
      requests: {cpu: "2", nvidia.com/gpu: 2}
      limits: {nvidia.com/gpu: 2}
      claims: [{name: c}]
  volumes: [{name: models, hostPath: {path: /srv}}]
)";

Json Applied(const api::Overrides& overrides) {
  return ApplyOverrides(Yaml(kTemplate), overrides, "server");
}

Json ContainerOf(const Json& pod_template, const char* list, const char* name) {
  const Json* found = codec::Named(codec::ListAt(pod_template, {"spec", list}), name);
  return found == nullptr ? Json() : *found;
}

Json Server(const api::Overrides& overrides) {
  return ContainerOf(Applied(overrides), "containers", "server");
}

TEST(Overrides, AbsentOnesChangeNothing) {
  EXPECT_EQ(Applied({}), Yaml(kTemplate));
}

TEST(Overrides, CommandReplacesCommandAndArgs) {
  const Json server = Server({.command = {"sh", "-c", "warm"}});
  EXPECT_EQ(server["command"], Json({"sh", "-c", "warm"}));
  EXPECT_FALSE(server.contains("args")) << "they belong to the replaced command";
}

TEST(Overrides, ArgsKeepTheCommand) {
  const Json server = Server({.args = {"--warm"}});
  EXPECT_EQ(server["command"], Json({"serve"}));
  EXPECT_EQ(server["args"], Json({"--warm"}));
}

TEST(Overrides, CommandAndArgsReplaceBoth) {
  const Json server = Server({.command = {"warm"}, .args = {"--all"}});
  EXPECT_EQ(server["command"], Json({"warm"}));
  EXPECT_EQ(server["args"], Json({"--all"}));
}

TEST(Overrides, VariablesAreReplacedByNameAndAdded) {
  const Json env = Server({.env = {{"LEVEL", "debug"}, {"MODE", "warm"}}})["env"];
  ASSERT_EQ(env.size(), 3U);
  EXPECT_EQ(env[0]["name"], "TOKEN");
  EXPECT_EQ(env[1], Json({{"name", "LEVEL"}, {"value", "debug"}}));
  EXPECT_EQ(env[2], Json({{"name", "MODE"}, {"value", "warm"}}));
  EXPECT_EQ(Server({.env = {{"TOKEN", "x"}}})["env"][0], Json({{"name", "TOKEN"}, {"value", "x"}}))
      << "a replaced variable must not refer to the Secret too";
}

TEST(Overrides, TolerationsAndNodeSelectorAreAdded) {
  const Json spec =
      Applied({.tolerations = {{.key = "spare", .value = "a", .effect = "NoSchedule"}},
               .node_selector = {{"pool", "spare"}}})["spec"];
  ASSERT_EQ(spec["tolerations"].size(), 2U);
  EXPECT_EQ(spec["tolerations"][0]["key"], "gpu");
  EXPECT_EQ(spec["tolerations"][1],
            Json({{"key", "spare"}, {"value", "a"}, {"effect", "NoSchedule"}}));
  EXPECT_EQ(spec["nodeSelector"], Json({{"gpu", "h100"}, {"pool", "spare"}}));
}

TEST(Overrides, ResourcesOfOtherContainersAreReplaced) {
  const Json applied = Applied({.resources = {{.container = "driver",
                                               .requests = {{"cpu", "500m"}},
                                               .limits = {{"nvidia.com/gpu", "1"}}},
                                              {.container = "proxy", .limits = {{"cpu", "2"}}}}});
  EXPECT_EQ(ContainerOf(applied, "containers", "driver")["resources"],
            Yaml("{requests: {cpu: 500m}, limits: {nvidia.com/gpu: '1'}, claims: [{name: c}]}"));
  EXPECT_EQ(ContainerOf(applied, "initContainers", "proxy")["resources"]["limits"],
            Json({{"cpu", "2"}}));
}

// Everything that could give the pod more rights than the template has.
TEST(Overrides, LeaveEverythingElseUnchanged) {
  Json applied = Applied({.command = {"x"},
                          .args = {"y"},
                          .env = {{"A", "b"}},
                          .tolerations = {{.key = "k"}},
                          .node_selector = {{"l", "v"}},
                          .resources = {{.container = "driver"}}});
  Json present = Yaml(kTemplate);
  ASSERT_NE(applied, present);
  for (Json* pod_template : {&applied, &present}) {
    Json& spec = (*pod_template)["spec"];
    for (const char* field : {"tolerations", "nodeSelector"}) {
      spec.erase(field);
    }
    for (const char* field : {"command", "args", "env"}) {
      spec["containers"][0].erase(field);
    }
    for (const char* field : {"requests", "limits"}) {
      spec["containers"][1]["resources"].erase(field);
    }
  }
  EXPECT_EQ(applied, present);
}

TEST(Overrides, TemplateWithoutTheContainerIsUnchanged) {
  EXPECT_EQ(ApplyOverrides(Yaml(kTemplate), {.command = {"x"}}, "gone"), Yaml(kTemplate));
}

}  // namespace
}  // namespace cachewarm::render
