// SPDX-License-Identifier: Apache-2.0
#include "operator/model/resource_requests.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::model {
namespace {

codec::Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

// A template's requests must be those that the decoded pod has (NodeUsage).
TEST(ResourceRequests, RequestsOfTemplateAreThoseOfItsPod) {
  const codec::Json spec = Parse(R"({
    "initContainers":[
      {"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
      {"resources":{"requests":{"cpu":"3"}}}],
    "containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}}}],
    "resources":{"requests":{"memory":"4Gi"}}})");
  const auto pod = api::DecodePod(std::make_shared<const codec::Json>(
      codec::Json{{"metadata", {{"name", "p"}, {"uid", "u"}}}, {"spec", spec}}));
  ASSERT_TRUE(pod.ok()) << pod.status();
  api::Resources of_template = RequestsOf(spec);
  EXPECT_EQ(of_template.at("cpu"), 5000) << "the sidecar runs beside the init container";
  EXPECT_EQ(of_template.at("memory"), int64_t{4} << 30);
  of_template.erase("pods");
  EXPECT_EQ(of_template, pod->requests);
}

TEST(ResourceRequests, RequestsAreSummedLikeTheScheduler) {
  const api::Resources requests = RequestsOf(Parse(R"({
    "containers":[
      {"resources":{"requests":{"cpu":"500m","memory":"1Gi"},"limits":{"nvidia.com/gpu":"2"}}},
      {"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"4"}}}],
    "initContainers":[
      {"resources":{"requests":{"cpu":"3"}}},
      {"restartPolicy":"Always","resources":{"requests":{"memory":"1Gi"}}}],
    "overhead":{"cpu":"100m"}})"));
  EXPECT_EQ(requests.at("cpu"), 3100);
  EXPECT_EQ(requests.at("memory"), int64_t{2} << 30);
  EXPECT_EQ(requests.at("nvidia.com/gpu"), 2);
  EXPECT_EQ(requests.at("pods"), 1);
}

TEST(ResourceRequests, UnreadableQuantitiesCountAsZero) {
  const api::Resources requests = RequestsOf(
      Parse(R"({"containers":[{"resources":{"requests":{"cpu":"lots","memory":[]}}},"x",null]})"));
  EXPECT_EQ(requests, (api::Resources{{"pods", 1}}));
  EXPECT_EQ(RequestsOf("x"), (api::Resources{{"pods", 1}}));
}

}  // namespace
}  // namespace cachewarm::model
