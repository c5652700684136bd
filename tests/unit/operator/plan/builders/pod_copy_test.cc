// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/pod_copy.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/wrong_types.h"

namespace cachewarm::plan {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

Json SpecOf() {
  return Parse(R"({"containers":[
    {"name":"proxy"},
    {"name":"server","image":"s:1","volumeMounts":[{"name":"w","mountPath":"/w"}]}],
    "volumes":[{"name":"w","emptyDir":{}}]})");
}

Json PodTemplate() {
  return {{"spec", SpecOf()}};
}

TEST(PodCopy, CopyWithSideEffectsIsRefused) {
  EXPECT_EQ(CopyRefusal(PodTemplate()), "");
  EXPECT_NE(CopyRefusal(Json::object()), "");
  Json host_network = PodTemplate();
  host_network["spec"]["hostNetwork"] = true;
  EXPECT_NE(CopyRefusal(host_network).find("hostNetwork"), std::string::npos);
  Json by_claim = PodTemplate();
  by_claim["spec"]["resourceClaims"] = Parse(R"([{"name":"gpu","resourceClaimTemplateName":"a"}])");
  EXPECT_NE(CopyRefusal(by_claim).find("resourceClaims"), std::string::npos);
}

TEST(PodCopy, WritableClaimIsRefusedAndEveryClaimIsShared) {
  Json pod_template = PodTemplate();
  EXPECT_FALSE(SharesVolumeClaim(pod_template));
  pod_template["spec"]["volumes"][0] =
      Parse(R"({"name":"w","persistentVolumeClaim":{"claimName":"c"}})");
  EXPECT_TRUE(SharesVolumeClaim(pod_template));
  EXPECT_NE(CopyRefusal(pod_template).find("could write to"), std::string::npos);
  pod_template["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = true;
  EXPECT_TRUE(SharesVolumeClaim(pod_template));
  EXPECT_EQ(CopyRefusal(pod_template), "");
}

TEST(PodCopy, WrongTypesDoNotCrash) {
  Json whole = PodTemplate();
  whole["spec"]["hostNetwork"] = false;
  whole["spec"]["resourceClaims"] = Json::array({{{"name", "gpu"}}});
  whole["spec"]["volumes"].push_back(
      Parse(R"({"name":"c","persistentVolumeClaim":{"claimName":"c","readOnly":true}})"));
  whole["spec"]["initContainers"] = Parse(R"([{"name":"i","ports":[{"hostPort":1}]}])");
  for (const Json& each : fakes::OfWrongTypes(whole)) {
    EXPECT_NO_THROW(CopyRefusal(each)) << each;
    EXPECT_NO_THROW(SharesVolumeClaim(each)) << each;
  }
}

}  // namespace
}  // namespace cachewarm::plan
