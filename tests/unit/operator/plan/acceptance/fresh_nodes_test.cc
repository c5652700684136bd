// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

// Nodes that do not exist yet, or still have their startup taint.
namespace cachewarm::plan {
namespace {

using fakes::Condition;
using fakes::OneNode;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

void MakeFresh(SnapshotBuilder& builder, const std::string& node) {
  builder.node(node).taints = {{.key = "cachewarm.io/warming", .effect = "NoSchedule"}};
}

struct FreshCase {
  const char* name;
  bool tainted;  // freshNodes.tainted
  void (*change)(SnapshotBuilder&);
  const char* reason;
};

class FreshNodes : public testing::TestWithParam<FreshCase> {};

// The node that existed before is gone.
TEST_P(FreshNodes, TaintedFreshNodesKeepInjection) {
  for (const bool was_injecting : {false, true}) {
    SnapshotBuilder builder = OneNode();
    builder.in().settings.fresh_nodes_tainted = GetParam().tainted;
    if (was_injecting) {
      builder.Accepted();
    } else {
      builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
    }
    builder.in().nodes.clear();
    GetParam().change(builder);
    const Plan plan = builder.Decide();
    EXPECT_EQ(ReasonOf(plan, "Ready"), GetParam().reason) << was_injecting;
    const bool injects = std::string_view("Injecting") == GetParam().reason;
    ASSERT_EQ(plan.status.injection.has_value(), injects) << was_injecting;
    EXPECT_FALSE(injects && plan.status.injection->gate) << "an autoscaler must see the pod";
  }
}

void NoNode(SnapshotBuilder& /*none*/) {}

void OneFresh(SnapshotBuilder& b) {
  b.Node({.name = "fresh", .prepared = false});
  MakeFresh(b, "fresh");
}

void OneFreshWithoutAgent(SnapshotBuilder& b) {
  b.Node({.name = "fresh", .agent = false, .prepared = false, .has_facts = false});
  MakeFresh(b, "fresh");
}

void FreshAndOneThatIsNot(SnapshotBuilder& b) {
  OneFresh(b);
  b.Node({.name = "plain", .prepared = false});
}

void FreshAndOneWithoutAgent(SnapshotBuilder& b) {
  OneFresh(b);
  b.Node({.name = "plain", .agent = false, .prepared = false});
}

void TolerateEverything(SnapshotBuilder& b) {
  b.pod_template()["spec"]["tolerations"] = {{{"operator", "Exists"}}};
}

void NotReady(SnapshotBuilder& b) {
  b.Node({.name = "n2"});
  b.node("n2").ready = false;
}

INSTANTIATE_TEST_SUITE_P(
    All, FreshNodes,
    testing::Values(
        FreshCase{"no_node", true, NoNode, "Injecting"},
        FreshCase{"one", true, OneFresh, "Injecting"},
        FreshCase{"one_without_agent", true, OneFreshWithoutAgent, "Injecting"},
        FreshCase{"not_ready", true, NotReady, "Injecting"},
        FreshCase{"beside_one_that_is_not", true, FreshAndOneThatIsNot, "PreparingNodes"},
        FreshCase{"beside_one_without_agent", true, FreshAndOneWithoutAgent, "DirectoryUnusable"},
        FreshCase{"for_pods_that_do_not_wait_for_it", true, TolerateEverything, "NoFittingNode"},
        FreshCase{"that_such_pods_land_on", true,
                  [](SnapshotBuilder& b) {
                    OneFresh(b);
                    TolerateEverything(b);
                  },
                  "PreparingNodes"},
        FreshCase{"unsaid_no_node", false, NoNode, "NoFittingNode"},
        FreshCase{"unsaid_one", false, OneFresh, "PreparingNodes"},
        FreshCase{"unsaid_not_ready", false, NotReady, "NoFittingNode"}),
    [](const auto& each) { return each.param.name; });

TEST(Acceptance, MessageNamesSettingForInjectionWithoutNodes) {
  for (const auto change : {NoNode, OneFresh}) {
    SnapshotBuilder builder = OneNode();
    builder.Accepted();
    builder.in().nodes.clear();
    change(builder);
    EXPECT_NE(Condition(builder.Decide(), "Ready")->message.find("freshNodes.tainted"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cachewarm::plan
