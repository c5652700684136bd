// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/node_usage.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using op::testing::PodObject;

kube::Object Bound(const std::string& name, const std::string& node,
                   const std::string& state = "Running") {
  codec::Json pod = PodObject(name);
  pod["spec"]["nodeName"] = node;
  pod["status"]["phase"] = state;
  return std::make_shared<const codec::Json>(pod);
}

TEST(NodeUsage, SumsUpWhatBoundPodsAskFor) {
  NodeUsage usage;
  usage.Apply({nullptr, Bound("a", "n1")});
  usage.Apply({nullptr, Bound("b", "n1")});
  usage.Apply({nullptr, Bound("c", "n2")});
  EXPECT_EQ(usage.Of("n1").at("cpu"), 2000);
  EXPECT_EQ(usage.Of("n1").at("pods"), 2);
  EXPECT_EQ(usage.Of("n2").at("memory"), int64_t{1} << 30);
  EXPECT_TRUE(usage.Of("n3").empty());
  EXPECT_EQ(usage.nodes(), 2U);
}

TEST(NodeUsage, EndedAndUnboundPodsCountNothing) {
  NodeUsage usage;
  usage.Apply({nullptr, Bound("a", "n1", "Succeeded")});
  usage.Apply({nullptr, Bound("b", "n1", "Failed")});
  usage.Apply({nullptr, Bound("c", "")});
  EXPECT_EQ(usage.nodes(), 0U);
}

TEST(NodeUsage, FollowsAPodThroughItsLife) {
  NodeUsage usage;
  const kube::Object pending = Bound("a", "", "Pending");
  const kube::Object running = Bound("a", "n1");
  const kube::Object ended = Bound("a", "n1", "Succeeded");
  usage.Apply({nullptr, pending});
  EXPECT_TRUE(usage.Of("n1").empty());
  usage.Apply({pending, running});
  EXPECT_EQ(usage.Of("n1").at("pods"), 1);
  usage.Apply({running, running});
  EXPECT_EQ(usage.Of("n1").at("pods"), 1);
  usage.Apply({running, ended});
  EXPECT_TRUE(usage.Of("n1").empty());
  usage.Apply({ended, nullptr});
  EXPECT_EQ(usage.nodes(), 0U);
}

TEST(NodeUsage, PodsThatAskForTheSameAreCountedEach) {
  NodeUsage usage;
  std::vector<kube::Object> pods;
  for (int i = 0; i < 40; ++i) {
    pods.push_back(Bound("p" + std::to_string(i), "n" + std::to_string(i % 4)));
    usage.Apply({nullptr, pods.back()});
  }
  EXPECT_EQ(usage.Of("n3").at("pods"), 10);
  for (const kube::Object& pod : pods) {
    usage.Apply({pod, nullptr});
  }
  EXPECT_EQ(usage.nodes(), 0U);
}

TEST(NodeUsage, APodOfTheSameNameReplacesTheOldOne) {
  NodeUsage usage;
  const kube::Object first = Bound("a", "n1");
  codec::Json other = *first;
  other["metadata"]["uid"] = "another";
  other["spec"]["nodeName"] = "n2";
  const auto second = std::make_shared<const codec::Json>(other);
  usage.Apply({nullptr, first});
  usage.Apply({first, second});
  EXPECT_TRUE(usage.Of("n1").empty());
  EXPECT_EQ(usage.Of("n2").at("pods"), 1);
}

}  // namespace
}  // namespace cachewarm::observe
