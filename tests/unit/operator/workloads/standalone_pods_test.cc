// SPDX-License-Identifier: Apache-2.0
#include "operator/workloads/standalone_pods.h"

#include <gtest/gtest.h>

#include <regex>

#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::workloads {
namespace {

using codec::Json;
using Labels = std::map<std::string, std::string>;

Json GpuPod(const std::string& metadata) {
  Json pod = codec::ParseYaml(
                 "{kind: Pod, spec: {containers: [{name: c, resources: {limits: "
                 "{nvidia.com/gpu: 1}}}]}}")
                 .value();
  pod["metadata"] = codec::ParseYaml(metadata).value();
  return pod;
}

Json Owned(const std::string& api_version, const std::string& kind) {
  Json pod = GpuPod("{labels: {app: llama}}");
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", api_version},
                                                     {"kind", kind},
                                                     {"name", "run-1"},
                                                     {"uid", "u"},
                                                     {"controller", true}}});
  return pod;
}

struct Case {
  std::string name;
  std::string metadata;
  Labels labels;
  std::string stem;  // of the warmup's name
};

class LoosePodsLabels : public testing::TestWithParam<Case> {};

TEST_P(LoosePodsLabels, AreThoseThatPeopleGive) {
  const auto pods = StandalonePodsOf(GpuPod(GetParam().metadata));
  ASSERT_TRUE(pods.has_value());
  EXPECT_EQ(pods->labels, GetParam().labels);
  if (GetParam().stem.empty()) {
    EXPECT_EQ(pods->warmup, kUnlabelled);
    return;
  }
  EXPECT_EQ(pods->warmup.substr(0, pods->warmup.rfind('-')), GetParam().stem);
  EXPECT_TRUE(std::regex_match(pods->warmup, std::regex("[a-z0-9][-a-z0-9]{0,31}-[0-9a-f]{12}")))
      << pods->warmup;
}

INSTANTIATE_TEST_SUITE_P(
    Table, LoosePodsLabels,
    testing::Values(
        Case{"one", "{labels: {app: llama}}", {{"app", "llama"}}, "llama"},
        Case{"none", "{}", {}, ""},
        Case{"of_controllers",
             "{labels: {job-name: a, controller-uid: b, volcano.sh/job-name: c, "
             "batch.kubernetes.io/job-completion-index: '3', app.kubernetes.io/version: '7'}}",
             {},
             ""},
        Case{"mixed",
             "{labels: {team: ml, volcano.sh/task-index: '1', app.kubernetes.io/name: Train_X}}",
             {{"team", "ml"}, {"app.kubernetes.io/name", "Train_X"}},
             "train-x"},
        Case{"odd_value", "{labels: {team: ''}}", {{"team", ""}}, "pods"},
        Case{"dots_at_the_end",
             "{labels: {team: _abcdefghijklmnopqrstuvwxyz1234.x}}",
             {{"team", "_abcdefghijklmnopqrstuvwxyz1234.x"}},
             "abcdefghijklmnopqrstuvwxyz1234"}),
    [](const auto& info) { return info.param.name; });

TEST(StandalonePods, NoMoreLabelsThanASelectorTakes) {
  Json pod = GpuPod("{}");
  for (int i = 0; i < 40; ++i) {
    pod["metadata"]["labels"]["label-" + std::to_string(i)] = "x";
  }
  EXPECT_EQ(StandalonePodsOf(pod)->labels.size(), 32U);
}

TEST(StandalonePods, EqualLabelsAreOneNameAndOthersAnother) {
  const auto name = [](const std::string& labels) {
    return StandalonePodsOf(GpuPod("{labels: " + labels + "}"))->warmup;
  };
  EXPECT_EQ(name("{a: x, b: y, job-name: one}"), name("{b: y, a: x, job-name: two}"));
  EXPECT_NE(name("{a: x, b: y}"), name("{a: x}"));
}

TEST(StandalonePods, AreMadeByNobodyThatWeKnow) {
  EXPECT_TRUE(StandalonePodsOf(Owned("batch.volcano.sh/v1alpha1", "Job")).has_value());
  EXPECT_TRUE(StandalonePodsOf(Owned("kubeflow.org/v1", "PyTorchJob")).has_value());
  EXPECT_TRUE(StandalonePodsOf(Owned("apps/v1", "ReplicaSet")).has_value()) << "made by hand";
  EXPECT_FALSE(StandalonePodsOf(Owned("apps/v1", "StatefulSet")).has_value());
  EXPECT_FALSE(StandalonePodsOf(Owned("batch/v1", "Job")).has_value());
  EXPECT_FALSE(StandalonePodsOf(Owned("apps/v1", "DaemonSet")).has_value());
  EXPECT_FALSE(StandalonePodsOf(Owned("v1", "Node")).has_value());
  for (const char* hash : {"pod-template-hash", "rollouts-pod-template-hash"}) {
    Json pod = Owned("apps/v1", "ReplicaSet");
    pod["metadata"]["labels"][hash] = "abc";
    EXPECT_FALSE(StandalonePodsOf(pod).has_value()) << hash;
  }
}

TEST(StandalonePods, AskForAnAcceleratorAndAreNobodyElses) {
  EXPECT_TRUE(StandalonePodsOf(GpuPod("{labels: {app: a}}")).has_value());
  Json plain = GpuPod("{labels: {app: a}}");
  plain["spec"]["containers"][0].erase("resources");
  EXPECT_FALSE(StandalonePodsOf(plain).has_value());
  const std::string own = StandalonePodsOf(GpuPod("{labels: {app: a}}"))->warmup;
  for (const auto& [annotation, is_loose] :
       std::map<std::string, bool>{{"{cachewarm.io/warm: 'false'}", false},
                                   {"{cachewarm.io/warm: 'true'}", true},
                                   {"{cachewarm.io/warmup: mine}", false},
                                   {"{cachewarm.io/warmup: " + own + "}", true}}) {
    const Json pod = GpuPod("{labels: {app: a}, annotations: " + annotation + "}");
    EXPECT_EQ(StandalonePodsOf(pod).has_value(), is_loose) << annotation;
  }
  EXPECT_FALSE(
      StandalonePodsOf(GpuPod("{labels: {app: a, cachewarm.io/builder-warmup: u}}")).has_value());
}

TEST(StandalonePods, WhatIsNoPodIsNotOne) {
  for (const char* odd : {"{}", "[]", "{metadata: 7, spec: {containers: 3}}"}) {
    EXPECT_FALSE(StandalonePodsOf(codec::ParseYaml(odd).value()).has_value()) << odd;
  }
}

}  // namespace
}  // namespace cachewarm::workloads
