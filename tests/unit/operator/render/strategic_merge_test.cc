// SPDX-License-Identifier: Apache-2.0
#include "operator/render/strategic_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Yaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

constexpr char kTemplate[] = R"(
metadata: {labels: {app: llama}}
spec:
  nodeSelector: {pool: gpu}
  containers:
  - name: server
    image: llama:1
    command: [serve, --fast]
    env: [{name: A, value: "1"}, {name: B, value: "2"}]
    ports: [{containerPort: 8000, name: http}]
    volumeMounts: [{name: models, mountPath: /models}, {name: tmp, mountPath: /tmp}]
    resources: {limits: {nvidia.com/gpu: 8, memory: 64Gi}}
  - name: proxy
    image: proxy:1
  tolerations: [{key: gpu, operator: Exists}]
  volumes:
  - {name: models, hostPath: {path: /models}}
  - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
)";

struct Case {
  const char* name;
  const char* patch;
  // What of the template is looked at, and what it is then.
  const char* pointer;
  const char* expected;
};

class Merges : public testing::TestWithParam<Case> {};

TEST_P(Merges, AsKubectlPatchDoes) {
  Json pod = Yaml(kTemplate);
  const absl::Status status = MergeStrategically(pod, Yaml(GetParam().patch));
  ASSERT_TRUE(status.ok()) << status;
  const Json::json_pointer at(GetParam().pointer);
  const Json found = pod.contains(at) ? pod[at] : Json("absent");
  EXPECT_EQ(found, Yaml(GetParam().expected)) << found.dump(1);
}

INSTANTIATE_TEST_SUITE_P(
    All, Merges,
    testing::Values(
        Case{"object", "{spec: {nodeSelector: {zone: a}}}", "/spec/nodeSelector",
             "{pool: gpu, zone: a}"},
        Case{"null", "{spec: {nodeSelector: {pool: null}}}", "/spec/nodeSelector", "{}"},
        Case{"absent_null", "{spec: {hostname: null}}", "/spec/hostname", "absent"},
        Case{"new_object", "{spec: {securityContext: {fsGroup: 1}}}", "/spec/securityContext",
             "{fsGroup: 1}"},
        Case{"element_by_name",
             "{spec: {containers: [{name: server, resources: {limits: {memory: 8Gi}}}]}}",
             "/spec/containers/0/resources/limits", "{nvidia.com/gpu: 8, memory: 8Gi}"},
        Case{"others_stay", "{spec: {containers: [{name: server, tty: true}]}}",
             "/spec/containers/1", "{name: proxy, image: 'proxy:1'}"},
        Case{"new_element", "{spec: {containers: [{name: new, image: i}]}}", "/spec/containers/2",
             "{name: new, image: i}"},
        Case{"element_deleted", "{spec: {containers: [{name: proxy, $patch: delete}]}}",
             "/spec/containers/1", "absent"},
        Case{"unknown_element_deleted", "{spec: {volumes: [{name: x, $patch: delete}]}}",
             "/spec/volumes/2", "absent"},
        Case{"element_replaced",
             "{spec: {containers: [{name: proxy, image: 'p:2', $patch: replace}]}}",
             "/spec/containers/1", "{name: proxy, image: 'p:2'}"},
        Case{"list_replaced", "{spec: {volumes: [{$patch: replace}, {name: x, emptyDir: {}}]}}",
             "/spec/volumes", "[{name: x, emptyDir: {}}]"},
        Case{"env", "{spec: {containers: [{name: server, env: [{name: B, value: x}, {name: C}]}]}}",
             "/spec/containers/0/env", "[{name: A, value: '1'}, {name: B, value: x}, {name: C}]"},
        Case{"ports",
             "{spec: {containers: [{name: server, ports: [{containerPort: 8000, name: n}]}]}}",
             "/spec/containers/0/ports", "[{containerPort: 8000, name: n}]"},
        Case{"mounts_by_path",
             "{spec: {containers: [{name: server, volumeMounts: [{mountPath: /tmp, name: "
             "models}]}]}}",
             "/spec/containers/0/volumeMounts/1", "{mountPath: /tmp, name: models}"},
        Case{"command_is_replaced", "{spec: {containers: [{name: server, command: [warm]}]}}",
             "/spec/containers/0/command", "[warm]"},
        Case{"tolerations_are_replaced", "{spec: {tolerations: [{operator: Exists}]}}",
             "/spec/tolerations", "[{operator: Exists}]"},
        Case{"object_replaced", "{spec: {nodeSelector: {$patch: replace, a: b}}}",
             "/spec/nodeSelector", "{a: b}"},
        Case{"object_deleted", "{spec: {nodeSelector: {$patch: delete}}}", "/spec/nodeSelector",
             "absent"},
        Case{
            "retain_keys",
            "{spec: {volumes: [{name: tmp, $retainKeys: [name, hostPath], hostPath: {path: /t}}]}}",
            "/spec/volumes/1", "{name: tmp, hostPath: {path: /t}}"},
        Case{"directives_in_what_is_new",
             "{spec: {affinity: {nodeAffinity: {$patch: replace, a: b}}}}", "/spec/affinity",
             "{nodeAffinity: {a: b}}"},
        Case{"labels", "{metadata: {labels: {app: null, x: y}}}", "/metadata/labels", "{x: y}"}),
    [](const auto& each) { return each.param.name; });

TEST(MergeStrategically, MistakesAreNamedByTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "expected an object"},
      {"{$patch: delete}", "$patch: cannot be used at the top level"},
      {"{spec: {$patch: erase}}", "spec.$patch: expected replace or delete"},
      {"{spec: {containers: [{image: x}]}}", "spec.containers[0]: name is required"},
      {"{spec: {containers: [server]}}", "spec.containers[0]: expected an object"},
      {"{spec: {containers: {name: server}}}", "spec.containers: expected a"},
      {"{spec: {nodeSelector: [a]}}", "spec.nodeSelector: expected an object"},
      {"{spec: {nodeSelector: gpu}}", "spec.nodeSelector: expected an object"},
      {"{spec: {containers: [{name: server, $setElementOrder/env: []}]}}",
       "spec.containers[0].$setElementOrder/env: unsupported directive"},
      {"{spec: {volumes: [{name: tmp, $retainKeys: name}]}}",
       "spec.volumes[0].$retainKeys: expected a list"}};
  for (const auto& [patch, message] : cases) {
    Json pod = Yaml(kTemplate);
    const absl::Status status = MergeStrategically(pod, Yaml(patch));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << patch;
    EXPECT_THAT(Message(status), testing::HasSubstr(message)) << patch;
  }
}

TEST(MergeStrategically, APatchOfNothingButElementsIsRefused) {
  Json pod = Yaml(kTemplate);
  Json volumes = Json::array();
  for (int i = 0; i < 257; ++i) {
    volumes.push_back({{"name", "v" + std::to_string(i)}});
  }
  const absl::Status status = MergeStrategically(pod, {{"spec", {{"volumes", volumes}}}});
  EXPECT_THAT(Message(status), testing::HasSubstr("spec.volumes: has more than 256 elements"));
  volumes.erase(256);
  EXPECT_TRUE(MergeStrategically(pod, {{"spec", {{"volumes", volumes}}}}).ok());
}

TEST(MergeStrategically, TwiceIsOnce) {
  Json once = Yaml(kTemplate);
  const Json patch = Yaml(
      "{spec: {containers: [{name: server, env: [{name: C, value: x}], command: [a]}, {name: "
      "new}]}}");
  ASSERT_TRUE(MergeStrategically(once, patch).ok());
  Json twice = once;
  ASSERT_TRUE(MergeStrategically(twice, patch).ok());
  EXPECT_EQ(once, twice);
}

}  // namespace
}  // namespace cachewarm::render
