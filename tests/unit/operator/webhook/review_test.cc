// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/review.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;
using ::testing::HasSubstr;

Json Question() {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "705ab4f5"},
            {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
            {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
            {"namespace", "serving"},
            {"operation", "CREATE"},
            {"object",
             {{"metadata", {{"generateName", "a-"}}}, {"spec", {{"containers", Json::array()}}}}},
            {"oldObject", nullptr},
            {"dryRun", false}}}};
}

TEST(Review, DecodesNamespaceAndPod) {
  const auto review = DecodeReview(Question().dump());
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->uid, "705ab4f5");
  EXPECT_EQ(review->ns, "serving");
  EXPECT_EQ(*review->pod, Question()["request"]["object"]);
}

struct Bad {
  const char* pointer;
  Json value;
  const char* message;
};

class BadReview : public ::testing::TestWithParam<Bad> {};

TEST_P(BadReview, ErrorNamesTheField) {
  Json question = Question();
  question[Json::json_pointer(GetParam().pointer)] = GetParam().value;
  const auto review = DecodeReview(question.dump());
  ASSERT_FALSE(review.ok());
  EXPECT_THAT(Message(review.status()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadReview,
    ::testing::Values(Bad{"/apiVersion", "admission.k8s.io/v1beta1", "apiVersion"},
                      Bad{"/kind", "Pod", "kind"}, Bad{"/request", nullptr, "request"},
                      Bad{"/request", "text", "request"}, Bad{"/request/uid", "", "request.uid"},
                      Bad{"/request/uid", 7, "request.uid"},
                      Bad{"/request/uid", std::string(129, 'x'), "request.uid"},
                      Bad{"/request/operation", "DELETE", "request.operation"},
                      Bad{"/request/resource/resource", "secrets", "request.resource.resource"},
                      Bad{"/request/resource/group", "apps", "request.resource.group"},
                      Bad{"/request/resource/version", "v2", "request.resource.version"},
                      Bad{"/request/subResource", "eviction", "request.subResource"},
                      Bad{"/request/namespace", "../etc", "request.namespace"},
                      Bad{"/request/namespace", nullptr, "request.namespace"},
                      Bad{"/request/object", nullptr, "request.object"},
                      Bad{"/request/object", Json::array(), "request.object"}));

TEST(Review, RejectsNonObjectsAndOversizedInput) {
  EXPECT_FALSE(DecodeReview("").ok());
  EXPECT_FALSE(DecodeReview("[]").ok());
  EXPECT_FALSE(DecodeReview("{\"kind\":").ok());
  EXPECT_FALSE(DecodeReview(std::string(100, '[') + std::string(100, ']')).ok());
  Json large = Question();
  large["request"]["object"]["x"] = std::string(kReviewBytesMax, 'x');
  EXPECT_FALSE(DecodeReview(large.dump()).ok());
  Json dense = Question();
  dense["request"]["object"]["spec"]["tolerations"] = Json(200'000, Json::object());
  ASSERT_LT(dense.dump().size(), kReviewBytesMax);
  EXPECT_THAT(Message(DecodeReview(dense.dump()).status()), HasSubstr("values is over the limit"));
}

TEST(Answer, PatchTurnsReviewedPodIntoChangedPod) {
  const auto review = *DecodeReview(Question().dump());
  Json changed = *review.pod;
  changed["metadata"]["annotations"]["a/b~c"] = "d";
  const auto answer = *codec::ParseJson(EncodeAnswer(review, changed));
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(answer["kind"], "AdmissionReview");
  const Json& response = answer["response"];
  EXPECT_EQ(response["uid"], "705ab4f5");
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const auto patch = *codec::ParseJson(*codec::DecodeBase64(response["patch"].get<std::string>()));
  EXPECT_EQ(review.pod->patch(patch), changed);
}

TEST(Answer, UnchangedPodGetsNoPatch) {
  const auto review = *DecodeReview(Question().dump());
  const auto answer = *codec::ParseJson(EncodeAnswer(review, *review.pod));
  EXPECT_EQ(answer["response"], Json({{"uid", "705ab4f5"}, {"allowed", true}}));
}

}  // namespace
}  // namespace cachewarm::webhook
