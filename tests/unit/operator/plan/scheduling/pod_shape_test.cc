// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/scheduling/pod_shape.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::plan {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

api::Node NodeWith(const std::map<std::string, std::string>& labels) {
  api::Node node;
  node.meta.name = "n1";
  node.meta.labels = labels;
  node.ready = true;
  return node;
}

std::string Required(const std::string& terms) {
  return R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
         R"({"nodeSelectorTerms":[)" +
         terms + "]}}}}";
}

std::string Expression(const std::string& body) {
  return R"({"matchExpressions":[)" + body + "]}";
}

struct SelectCase {
  const char* name;
  std::string spec;
  bool selected;
};

class SelectsNode : public testing::TestWithParam<SelectCase> {};

TEST_P(SelectsNode, LikeTheScheduler) {
  const PodShape shape = ShapeOf(Parse(GetParam().spec));
  EXPECT_EQ(Selects(shape, NodeWith({{"pool", "a"}, {"cores", "64"}})), GetParam().selected);
}

INSTANTIATE_TEST_SUITE_P(
    All, SelectsNode,
    testing::Values(
        SelectCase{"nothing", "{}", true},
        SelectCase{"selector", R"({"nodeSelector":{"pool":"a"}})", true},
        SelectCase{"selector_other", R"({"nodeSelector":{"pool":"b"}})", false},
        SelectCase{"selector_absent", R"({"nodeSelector":{"zone":"x"}})", false},
        SelectCase{"in", Required(Expression(R"({"key":"pool","operator":"In","values":["a"]})")),
                   true},
        SelectCase{"not_in",
                   Required(Expression(R"({"key":"pool","operator":"NotIn","values":["a"]})")),
                   false},
        SelectCase{"not_in_absent",
                   Required(Expression(R"({"key":"zone","operator":"NotIn","values":["a"]})")),
                   true},
        SelectCase{"exists", Required(Expression(R"({"key":"pool","operator":"Exists"})")), true},
        SelectCase{"absent", Required(Expression(R"({"key":"pool","operator":"DoesNotExist"})")),
                   false},
        SelectCase{"greater",
                   Required(Expression(R"({"key":"cores","operator":"Gt","values":["32"]})")),
                   true},
        SelectCase{"less",
                   Required(Expression(R"({"key":"cores","operator":"Lt","values":["32"]})")),
                   false},
        SelectCase{"not_a_number",
                   Required(Expression(R"({"key":"pool","operator":"Gt","values":["1"]})")), false},
        SelectCase{"either",
                   Required(Expression(R"({"key":"pool","operator":"In","values":["b"]})") + "," +
                            Expression(R"({"key":"cores","operator":"Exists"})")),
                   true},
        SelectCase{"both",
                   Required(Expression(R"({"key":"pool","operator":"Exists"},)"
                                       R"({"key":"zone","operator":"Exists"})")),
                   false},
        SelectCase{"by_name",
                   Required(R"({"matchFields":[{"key":"metadata.name","operator":"In",)"
                            R"("values":["n1"]}]})"),
                   true},
        SelectCase{"by_other_name",
                   Required(R"({"matchFields":[{"key":"metadata.name","operator":"In",)"
                            R"("values":["n2"]}]})"),
                   false},
        SelectCase{"empty_term", Required("{}"), false},
        SelectCase{"no_terms", Required(""), false},
        SelectCase{"malformed", R"({"nodeSelector":7,"affinity":"x","tolerations":{}})", true}),
    [](const auto& each) { return each.param.name; });

struct TaintCase {
  const char* name;
  api::Taint taint;
  const char* tolerations;
  Taints taints;
  bool tolerated;
};

class ToleratesNode : public testing::TestWithParam<TaintCase> {};

TEST_P(ToleratesNode, LikeTheScheduler) {
  api::Node node = NodeWith({});
  node.taints = {GetParam().taint};
  const PodShape shape =
      ShapeOf(Parse(std::string(R"({"tolerations":[)") + GetParam().tolerations + "]}"));
  EXPECT_EQ(Tolerates(shape, node, GetParam().taints), GetParam().tolerated);
}

constexpr const char* kGpuExists = R"({"key":"nvidia.com/gpu","operator":"Exists"})";
constexpr const char* kGpuEqual = R"({"key":"nvidia.com/gpu","value":"yes"})";
const api::Taint kGpu = {"nvidia.com/gpu", "yes", "NoSchedule"};
const api::Taint kNotReady = {"node.kubernetes.io/not-ready", "", "NoSchedule"};
const api::Taint kWarming = {"cachewarm.io/warming", "", "NoSchedule"};
const api::Taint kCilium = {"startup-taint.cluster-autoscaler.kubernetes.io/cilium", "",
                            "NoSchedule"};

INSTANTIATE_TEST_SUITE_P(
    All, ToleratesNode,
    testing::Values(
        TaintCase{"bare", kGpu, "", Taints::kAll, false},
        TaintCase{"exists", kGpu, kGpuExists, Taints::kAll, true},
        TaintCase{"equal", kGpu, kGpuEqual, Taints::kAll, true},
        TaintCase{
            "unequal", {"nvidia.com/gpu", "no", "NoSchedule"}, kGpuEqual, Taints::kAll, false},
        TaintCase{"all", {"any", "", "NoExecute"}, R"({"operator":"Exists"})", Taints::kAll, true},
        TaintCase{"effect",
                  {"any", "", "NoExecute"},
                  R"({"key":"any","operator":"Exists","effect":"NoSchedule"})",
                  Taints::kAll,
                  false},
        TaintCase{"prefer", {"any", "", "PreferNoSchedule"}, "", Taints::kAll, true},
        TaintCase{"passing", kNotReady, "", Taints::kAll, false},
        TaintCase{"passing_ignored", kNotReady, "", Taints::kPersistent, true},
        TaintCase{"startup", kWarming, "", Taints::kAll, false},
        TaintCase{"startup_ignored", kWarming, "", Taints::kPersistent, true},
        TaintCase{"startup_of_others", kCilium, "", Taints::kAll, false},
        TaintCase{"startup_of_others_ignored", kCilium, "", Taints::kPersistent, true}),
    [](const auto& each) { return each.param.name; });

TEST(Shape, CordonIsTransient) {
  api::Node node = NodeWith({});
  node.unschedulable = true;
  EXPECT_FALSE(Tolerates({}, node, Taints::kAll));
  EXPECT_TRUE(Tolerates({}, node, Taints::kPersistent));
}

TEST(Shape, UnlistedDevicesAreAbsent) {
  EXPECT_TRUE(Covers({{"cpu", 1000}}, {{"cpu", 1000}, {"memory", 5}}));
  EXPECT_FALSE(Covers({{"cpu", 1000}}, {{"cpu", 1001}}));
  EXPECT_FALSE(Covers({{"cpu", 1000}}, {{"nvidia.com/gpu", 1}}));
  EXPECT_TRUE(Covers({{"cpu", 1000}}, {{"nvidia.com/gpu", 0}}));
}

TEST(Shape, HostnameIsLabelOrName) {
  EXPECT_EQ(HostnameOf(NodeWith({})), "n1");
  EXPECT_EQ(HostnameOf(NodeWith({{"kubernetes.io/hostname", "h"}})), "h");
}

TEST(Tolerates, StartupTaintsAreTransient) {
  for (const char* key :
       {"cachewarm.io/warming", "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm",
        "startup-taint.cluster-autoscaler.kubernetes.io/cilium", "readiness.k8s.io/network",
        "karpenter.sh/unregistered"}) {
    api::Node node;
    node.taints = {{.key = key, .effect = "NoSchedule"}};
    EXPECT_TRUE(Tolerates({}, node, Taints::kPersistent)) << key;
    EXPECT_FALSE(Tolerates({}, node, Taints::kAll)) << key;
  }
}

TEST(HasStartupTaint, CountsOnlyCachewarmTaints) {
  api::Node node;
  EXPECT_FALSE(HasStartupTaint(node));
  node.taints = {{.key = "cachewarm.io/warmings", .effect = "NoSchedule"}};
  EXPECT_FALSE(HasStartupTaint(node));
  node.taints.push_back({.key = "cachewarm.io/warming", .effect = "NoExecute"});
  EXPECT_TRUE(HasStartupTaint(node));
}

TEST(HasStartupTaint, DependsOnTolerationsOfPods) {
  api::Node node;
  node.taints = {{.key = "nvidia.com/gpu", .effect = "NoSchedule"}};
  EXPECT_FALSE(HasStartupTaintFor({}, node));
  node.taints.push_back({.key = "cachewarm.io/warming", .effect = "NoSchedule"});
  EXPECT_TRUE(HasStartupTaintFor({}, node));
  EXPECT_TRUE(
      HasStartupTaintFor({.tolerations = {{.key = "nvidia.com/gpu", .op = "Exists"}}}, node));
  EXPECT_FALSE(HasStartupTaintFor({.tolerations = {{.op = "Exists"}}}, node));
  node.taints.back().effect = "PreferNoSchedule";
  EXPECT_FALSE(HasStartupTaintFor({}, node));
}

}  // namespace
}  // namespace cachewarm::plan
