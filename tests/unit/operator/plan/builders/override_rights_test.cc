// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/override_rights.h"

#include <gtest/gtest.h>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "tests/fakes/wrong_types.h"

namespace cachewarm::plan {
namespace {

using codec::Json;

Json Yaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

constexpr char kTemplate[] = R"(
spec:
  initContainers:
  - {name: proxy, restartPolicy: Always, resources: {limits: {cpu: "1"}}}
  containers:
  - {name: server, resources: {limits: {nvidia.com/gpu: 1}}}
  - name: driver
    resources: {requests: {cpu: "2", nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 2}}
)";

struct RefusedOverrides {
  const char* name;
  api::ContainerResources resources;
  const char* message;
};

class RefusedResources : public testing::TestWithParam<RefusedOverrides> {};

TEST_P(RefusedResources, ErrorNamesContainerAndRemedy) {
  const absl::Status status =
      CheckOverrides(Yaml(kTemplate), {.resources = {GetParam().resources}}, "server");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), std::string("compile.overrides.resources: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedResources,
    testing::Values(
        RefusedOverrides{"of_the_container_that_compiles",
                         {.container = "server", .limits = {{"cpu", "1"}}},
                         "container \"server\" compiles the cache, and its resources stay those of "
                         "the workload; remove the entry"},
        RefusedOverrides{"of_no_container",
                         {.container = "gone"},
                         "the pod template has no container \"gone\"; correct or remove the entry"},
        RefusedOverrides{
            "new_device",
            {.container = "driver", .limits = {{"example.com/fuse", "1"}}},
            "container \"driver\" must not get 1 example.com/fuse, because its template "
            "requests 0; lower the amount, or raise it in the workload"},
        RefusedOverrides{"new_device_of_an_init_container",
                         {.container = "proxy", .requests = {{"nvidia.com/gpu", "1"}}},
                         "container \"proxy\" must not get 1 nvidia.com/gpu, because its template "
                         "requests 0; lower the amount, or raise it in the workload"},
        RefusedOverrides{"more_devices",
                         {.container = "driver", .limits = {{"nvidia.com/gpu", "3"}}},
                         "container \"driver\" must not get 3 nvidia.com/gpu, because its template "
                         "requests 2; lower the amount, or raise it in the workload"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(OverrideRights, TemplateWithoutTheContainerIsRefused) {
  const absl::Status status = CheckOverrides(Yaml(kTemplate), {.command = {"x"}}, "gone");
  EXPECT_EQ(
      Message(status),
      "compile.overrides: the pod template has no container \"gone\"; correct spec.container");
}

TEST(OverrideRights, FewerDevicesAndMoreOfOtherResourcesAreAllowed) {
  const absl::Status status =
      CheckOverrides(Yaml(kTemplate),
                     {.resources = {{.container = "driver",
                                     .requests = {{"cpu", "8"}},
                                     .limits = {{"nvidia.com/gpu", "1"}}},
                                    {.container = "proxy", .limits = {{"cpu", "2"}}}}},
                     "server");
  EXPECT_TRUE(status.ok()) << status;
}

// A CacheWarmup's spec.template keeps unknown fields, so its types are unchecked.
TEST(OverrideRights, WrongTypesDoNotCrash) {
  for (const Json& each : fakes::OfWrongTypes(Yaml(kTemplate))) {
    EXPECT_NO_THROW(
        CheckOverrides(each, {.resources = {{.container = "proxy", .limits = {{"a/b", "0"}}}}},
                       "server")
            .IgnoreError())
        << each;
  }
}

}  // namespace
}  // namespace cachewarm::plan
