// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/rehearsals.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::admission {
namespace {

using plan::Answer;
using std::chrono::seconds;

absl::Status Refusal(int code, const std::string& reason, const std::string& message) {
  return kube::ToStatus({.code = code, .reason = reason, .message = message});
}

TEST(Classify, OnlyWhatIsAboutThePodIsARefusal) {
  struct Case {
    absl::Status status;
    Answer expected;
  };
  const std::vector<Case> cases = {
      {absl::OkStatus(), Answer::kAllowed},
      {Refusal(403, "Forbidden",
               "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": hostPath "
               "volumes (volume \"cachewarm\")"),
       Answer::kRefused},
      {Refusal(422, "Invalid", "Pod \"a\" is invalid: spec.volumes[1].name: Duplicate value"),
       Answer::kRefused},
      {Refusal(400, "BadRequest", "admission webhook \"x\" denied the request"), Answer::kRefused},
      {Refusal(403, "Forbidden", "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1"),
       Answer::kUnknown},
      {Refusal(400, "BadRequest", "admission webhook \"x\" does not support dry run"),
       Answer::kUnknown},
      {Refusal(500, "InternalError", "failed calling webhook \"x\": no endpoints"),
       Answer::kUnknown},
      {Refusal(403, "Forbidden", "User \"op\" cannot create resource \"pods\" in API group"),
       Answer::kUnknown},
      {Refusal(403, "Forbidden", "unable to create new content because it is being terminated"),
       Answer::kUnknown},
      {Refusal(429, "TooManyRequests", "slow down"), Answer::kUnknown},
      {Refusal(401, "Unauthorized", "who are you"), Answer::kUnknown},
      {absl::UnavailableError("connection refused"), Answer::kUnknown},
      {absl::DeadlineExceededError("silence"), Answer::kUnknown},
      {absl::CancelledError("stopping"), Answer::kUnknown},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Classify(test.status), test.expected) << test.status;
  }
}

class RehearsalsTest : public ::testing::Test {
 protected:
  RehearsalsTest() : server(clock), rehearsals(server, clock) {
    codec::Json as_is = op::testing::PodObject("");
    as_is["metadata"].erase("name");
    as_is["metadata"]["generateName"] = "rehearsal-";
    codec::Json injected = as_is;
    injected["spec"]["volumes"] = {{{"name", "cachewarm"}, {"hostPath", {{"path", "/x"}}}}};
    wish.fingerprint = "f1";
    wish.as_is = std::make_shared<const codec::Json>(as_is);
    wish.injected = std::make_shared<const codec::Json>(injected);
  }

  // The server refuses pods with our volume, or all.
  void Refuse(bool all) {
    server.OnWrite([all](const kube::Request&, codec::Json& pod) {
      const bool ours = pod["spec"].contains("volumes");
      return all || ours ? Refusal(403, "Forbidden", "violates PodSecurity") : absl::OkStatus();
    });
  }

  plan::Rehearsal Rehearse() { return rehearsals.Rehearse("uid-1", "default", wish, {}); }

  fakes::FakeClock clock;
  fakes::FakeApiServer server;
  Rehearsals rehearsals;
  plan::RehearsalWish wish;
};

TEST_F(RehearsalsTest, AllowedBothWays) {
  const plan::Rehearsal verdict = Rehearse();
  EXPECT_EQ(verdict.as_is, Answer::kAllowed);
  EXPECT_EQ(verdict.injected, Answer::kAllowed);
  EXPECT_EQ(verdict.fingerprint, "f1");
  EXPECT_EQ(verdict.time, clock.Now());
  EXPECT_EQ(verdict.message, "");
  EXPECT_TRUE(server.All(kube::kPods).empty()) << "a rehearsal stored a pod";
}

TEST_F(RehearsalsTest, RefusedOnlyWhenInjectedTellsTheServersWords) {
  Refuse(false);
  const plan::Rehearsal verdict = Rehearse();
  EXPECT_EQ(verdict.as_is, Answer::kAllowed);
  EXPECT_EQ(verdict.injected, Answer::kRefused);
  EXPECT_NE(verdict.message.find("violates PodSecurity"), std::string::npos);
}

TEST_F(RehearsalsTest, APodThatIsRefusedAsItIsSaysNothingAboutUs) {
  Refuse(true);
  const plan::Rehearsal verdict = Rehearse();
  EXPECT_EQ(verdict.as_is, Answer::kRefused);
  EXPECT_EQ(verdict.injected, Answer::kUnknown);
}

TEST_F(RehearsalsTest, RemembersTheLastVerdictOfEachWarmup) {
  EXPECT_EQ(rehearsals.Last("uid-1").fingerprint, "");
  Rehearse();
  EXPECT_EQ(rehearsals.Last("uid-1").injected, Answer::kAllowed);
  EXPECT_EQ(rehearsals.Last("uid-2").fingerprint, "");
  rehearsals.Forget("uid-1");
  EXPECT_EQ(rehearsals.Last("uid-1").fingerprint, "");
}

TEST_F(RehearsalsTest, RepeatsNoSoonerThanAsked) {
  EXPECT_FALSE(rehearsals.Repeat("uid-1", "default", seconds(15), {}).has_value());
  Rehearse();
  EXPECT_FALSE(rehearsals.Repeat("uid-1", "default", seconds(15), {}).has_value());
  clock.Advance(seconds(15));
  Refuse(false);
  const auto verdict = rehearsals.Repeat("uid-1", "default", seconds(15), {});
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->injected, Answer::kRefused);
  EXPECT_EQ(rehearsals.Last("uid-1").injected, Answer::kRefused);
}

TEST_F(RehearsalsTest, OnlyDryRunsAreSent) {
  int real = 0;
  server.Intercept([&](const kube::Request& request) {
    real += request.query.find("dryRun=All") == std::string::npos ? 1 : 0;
    return absl::OkStatus();
  });
  Rehearse();
  EXPECT_EQ(real, 0);
}

}  // namespace
}  // namespace cachewarm::admission
