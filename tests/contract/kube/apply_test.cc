// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "tests/contract/kube/backend.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

class ApplyContract : public KubeContract {
 protected:
  // Applies environment variables of the container of Deployment "d" as `manager`.
  Request ApplyVariables(const std::string& manager, const std::vector<std::string>& names,
                         const std::string& value = "1") const {
    Json container = {{"name", "c"}};
    for (const std::string& name : names) {
      container["env"].push_back({{"name", name}, {"value", value}});
    }
    return Apply(kDeployments,
                 {{"metadata", Named("d")},
                  {"spec", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}},
                 {.field_manager = manager});
  }
  // "name=value" of each variable.
  static std::string Variables(const Json& deployment) {
    std::string text;
    const Json* spec = codec::At(deployment, {"spec", "template", "spec"});
    const Json containers = spec == nullptr ? Json::array() : (*spec)["containers"];
    for (const Json& container : containers) {
      const Json variables = container.value("env", Json::array());
      for (const Json& variable : variables) {
        text += fmt::format("{}={} ", codec::TextAt(variable, {"name"}),
                            codec::TextAt(variable, {"value"}));
      }
    }
    return text;
  }
};
INSTANTIATE_TEST_SUITE_P(Api, ApplyContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(ApplyContract, ApplyCreatesThenUpdates) {
  const Json created = Do(Apply(kLeases, Lease("a", "one"), {.field_manager = "m"}));
  EXPECT_NE(UidOf(created), "");
  const Json updated = Do(Apply(kLeases, Lease("a", "two"), {.field_manager = "m"}));
  EXPECT_EQ(UidOf(updated), UidOf(created));
  EXPECT_EQ(codec::TextAt(updated, {"spec", "holderIdentity"}), "two");
}

TEST_P(ApplyContract, RepeatedApplyChangesNothing) {
  const Json first = Do(Apply(kLeases, Lease("a"), {.field_manager = "m"}));
  const Json again = Do(Apply(kLeases, Lease("a"), {.field_manager = "m"}));
  EXPECT_EQ(ResourceVersionOf(again), ResourceVersionOf(first));
}

TEST_P(ApplyContract, ApplyRemovesOmittedFields) {
  Json lease = Lease("a");
  lease["metadata"]["annotations"] = {{"applied", "1"}};
  Do(Apply(kLeases, lease, {.field_manager = "m"}));
  Do(MergePatch(kLeases, NameOf("a"), {{"metadata", {{"annotations", {{"other", "2"}}}}}}, {}));
  const Json without = Do(Apply(kLeases, Lease("a"), {.field_manager = "m"}));
  EXPECT_EQ(AnnotationsOf(without), (std::map<std::string, std::string>{{"other", "2"}}));
}

TEST_P(ApplyContract, SharedFieldStaysUntilBothManagersRemoveIt) {
  Json both = Lease("a");
  both["metadata"]["annotations"] = {{"shared", "1"}};
  Do(Apply(kLeases, both, {.field_manager = "one"}));
  Do(Apply(kLeases, both, {.field_manager = "two"}));
  const Json after_one = Do(Apply(kLeases, Lease("a"), {.field_manager = "one"}));
  EXPECT_EQ(AnnotationsOf(after_one).size(), 1U);
  const Json after_two = Do(Apply(kLeases, Lease("a"), {.field_manager = "two"}));
  EXPECT_EQ(AnnotationsOf(after_two).size(), 0U);
}

TEST_P(ApplyContract, ForcedApplyTakesOwnership) {
  Do(Apply(kLeases, Lease("a", "one"), {.field_manager = "one"}));
  const Json taken = Do(Apply(kLeases, Lease("a", "two"), {.field_manager = "two"}));
  EXPECT_EQ(codec::TextAt(taken, {"spec", "holderIdentity"}), "two");
}

TEST_P(ApplyContract, ManagersAddAndRemoveOnlyTheirOwnItems) {
  Do(Create(kDeployments, Deployment("d"), {}));
  Do(ApplyVariables("cw-1", {"A", "B"}));
  Do(ApplyVariables("cw-2", {"C"}));
  EXPECT_EQ(Variables(Do(ApplyVariables("cw-1", {"A"}))), "A=1 C=1 ");
  EXPECT_EQ(Variables(Do(ApplyVariables("cw-1", {"A"}, "2"))), "A=2 C=1 ");
  EXPECT_EQ(Variables(Do(ApplyVariables("cw-1", {}))), "C=1 ");
  const Json empty = Do(ApplyVariables("cw-2", {}));
  EXPECT_EQ(Variables(empty), "");
  EXPECT_NE(empty.dump().find("i:1"), std::string::npos) << "the container itself stays";
}

TEST_P(ApplyContract, StatusIsAppliedSeparatelyFromSpec) {
  Do(Create(kDeployments, Deployment("d"), {}));
  const Json condition = {{"type", "Tested"}, {"status", "True"}};
  const Json status =
      Do(Apply(kDeployments,
               {{"metadata", Named("d")}, {"status", {{"conditions", Json::array({condition})}}}},
               {.field_manager = "agent", .subresource = "status"}));
  EXPECT_EQ(*codec::At(status, {"spec", "replicas"}), 0);
  EXPECT_EQ(*codec::At(status, {"metadata", "generation"}), 1);
  const Json spec = Do(ApplyVariables("cw-1", {"A"}));
  EXPECT_EQ(*codec::At(spec, {"metadata", "generation"}), 2);
  EXPECT_NE(spec.dump().find("Tested"), std::string::npos);
}

TEST_P(ApplyContract, ApplyCanBeBoundToUid) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  Json bound = Lease("a", "bound");
  bound["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  EXPECT_EQ(Fails(Apply(kLeases, bound, {})).code(), absl::StatusCode::kInvalidArgument);
  bound["metadata"]["name"] = "gone";
  EXPECT_EQ(Fails(Apply(kLeases, bound, {})).code(), absl::StatusCode::kAborted);
  bound["metadata"]["name"] = "a";
  bound["metadata"]["uid"] = UidOf(created);
  EXPECT_EQ(codec::TextAt(Do(Apply(kLeases, bound, {})), {"spec", "holderIdentity"}), "bound");
}

TEST_P(ApplyContract, DryRunOfApplyStoresNothing) {
  Do(Apply(kLeases, Lease("a", "one"), {.field_manager = "m"}));
  Do(Apply(kLeases, Lease("a", "two"), {.field_manager = "m", .dry_run = true}));
  EXPECT_EQ(codec::TextAt(Do(Get(kLeases, NameOf("a"))), {"spec", "holderIdentity"}), "one");
}

}  // namespace
}  // namespace cachewarm::kube
