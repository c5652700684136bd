// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/release.h"

#include <vector>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/kube/core/error.h"
#include "operator/render/affinity.h"
#include "tests/contract/kube/backend.h"
#include "tests/fakes/await.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

Json In(const char* key, const char* value) {
  return {{"key", key}, {"operator", "In"}, {"values", Json::array({value})}};
}

// Required node affinity with these terms, each a list of requirements.
Json Required(const std::vector<Json>& terms) {
  Json out = Json::array();
  for (const Json& term : terms) {
    out.push_back({{"matchExpressions", term}});
  }
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", out}}}}}};
}

// The API server decides which fields of a gated pod may change (KEP-3838).
class ReleaseContract : public KubeContract {
 protected:
  // Creates a pod with cachewarm's gate and a second one, so that no scheduler binds it.
  Json Gated(const Json& affinity) {
    Json pod = {{"metadata", Named("a")},
                {"spec",
                 {{"schedulingGates", Json::array({{{"name", "example.com/other"}},
                                                   {{"name", std::string(api::kSchedulingGate)}}})},
                  {"containers", Json::array({{{"name", "c"}, {"image", "i:1"}}})}}}};
    if (!affinity.is_null()) {
      pod["spec"]["affinity"] = affinity;
    }
    // A new namespace has no service account at first, and pods cannot be created without one.
    absl::StatusOr<Json> created;
    fakes::Await([&] {
      created = client().Do(Create(kPods, pod, {}), {});
      return created.ok();
    });
    EXPECT_TRUE(created.ok()) << created.status();
    return created.value_or(Json::object());
  }

  absl::StatusOr<bool> Release(const Json& snapshot, const render::HostRules& rules) {
    CW_ASSIGN_OR_RETURN(const api::Pod pod, api::DecodePod(std::make_shared<const Json>(snapshot)));
    const Json affinity = render::WithHostRules(pod, rules);
    return gate::Release(
        client(), {.pod = pod, .reason = "ReleasedWarm", .affinity = &affinity, .manager = "test"},
        {});
  }

  // Another client adds a preference after `snapshot`, as the API allows while the pod is gated.
  void ExpectAffinityKept(const Json& snapshot) {
    const Json added = Json::array(
        {{{"weight", 50}, {"preference", {{"matchExpressions", Json::array({In("pool", "b")})}}}}});
    Json affinity = snapshot["spec"].value("affinity", Json::object());
    affinity["nodeAffinity"][kPreferred] = added;
    const Json operation = {{"op", "add"}, {"path", "/spec/affinity"}, {"value", affinity}};
    Do(JsonPatch(kPods, NameOf("a"), Json::array({operation}), {.field_manager = "somebody"}));
    const auto released = Release(snapshot, {.excluded = {"n9"}, .preferred = {"n1"}});
    EXPECT_EQ(HttpCodeOf(released.status()), 422) << released.status();
    EXPECT_TRUE(absl::IsInvalidArgument(released.status()));
    EXPECT_EQ(Gates(), 2U);
    const auto plain = Release(snapshot, {});
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_TRUE(*plain) << "a release without affinity succeeds";
    EXPECT_EQ(Gates(), 1U);
    const Json after = Do(Get(kPods, NameOf("a")));
    EXPECT_EQ(after["spec"]["affinity"]["nodeAffinity"][kPreferred], added);
  }

  size_t Gates() { return Do(Get(kPods, NameOf("a")))["spec"]["schedulingGates"].size(); }
};
INSTANTIATE_TEST_SUITE_P(Api, ReleaseContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(ReleaseContract, ReleaseAddsHostRuleToEachTerm) {
  const Json pod =
      Gated(Required({Json::array({In("pool", "a")}), Json::array({In("pool", "b")})}));
  const auto released = Release(pod, {.excluded = {"n9"}, .preferred = {"n1"}});
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_TRUE(*released);
  EXPECT_EQ(Gates(), 1U) << "the second gate stays";
  const Json after = Do(Get(kPods, NameOf("a")));
  const Json* terms =
      codec::At(after, {"spec", "affinity", "nodeAffinity",
                        "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  ASSERT_NE(terms, nullptr);
  ASSERT_EQ(terms->size(), 2U);
  for (const Json& term : *terms) {
    ASSERT_EQ(term["matchExpressions"].size(), 2U);
    EXPECT_EQ(term["matchExpressions"][0]["key"], "pool");
    EXPECT_EQ(term["matchExpressions"][1]["operator"], "NotIn");
  }
}

TEST_P(ReleaseContract, ReleaseFromLooserAffinityIsRejected) {
  Json pod = Gated(Required({Json::array({In("pool", "a"), In("zone", "z")})}));
  pod["spec"]["affinity"] = Required({Json::array({In("pool", "a")})});
  const auto released = Release(pod, {.excluded = {"n9"}});
  EXPECT_EQ(HttpCodeOf(released.status()), 422) << released.status();
  EXPECT_TRUE(absl::IsInvalidArgument(released.status()));
  EXPECT_EQ(Gates(), 2U);
  const auto plain = Release(pod, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(*plain) << "a release without affinity succeeds";
}

TEST_P(ReleaseContract, ReleaseAddsAffinityToPodWithoutOne) {
  const auto released = Release(Gated(Json()), {.preferred = {"n1"}});
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_TRUE(*released);
  EXPECT_EQ(Gates(), 1U);
  const Json after = Do(Get(kPods, NameOf("a")));
  EXPECT_EQ(after["spec"]["affinity"]["nodeAffinity"][kPreferred].size(), 1U);
}

TEST_P(ReleaseContract, ReleaseKeepsConcurrentlyAddedAffinity) {
  ExpectAffinityKept(Gated(Json()));
}

TEST_P(ReleaseContract, ReleaseKeepsConcurrentlyAddedPreference) {
  ExpectAffinityKept(Gated(Required({Json::array({In("pool", "a")})})));
}

TEST_P(ReleaseContract, ReleaseSkipsReplacedPod) {
  Json pod = Gated(Required({Json::array({In("pool", "a")})}));
  pod["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  const auto released = Release(pod, {.preferred = {"n1"}});
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_FALSE(*released);
  EXPECT_EQ(Gates(), 2U);
}

}  // namespace
}  // namespace cachewarm::kube
