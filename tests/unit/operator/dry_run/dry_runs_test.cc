// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/dry_runs.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::dry_run {
namespace {

using model::DryRunResult;
using std::chrono::seconds;

absl::Status Refusal(int code, const std::string& reason, const std::string& message) {
  return kube::ToStatus({.code = code, .reason = reason, .message = message});
}

TEST(Classify, OnlyPodErrorsAreRejections) {
  struct Case {
    absl::Status status;
    DryRunResult expected;
  };
  const std::vector<Case> cases = {
      {absl::OkStatus(), DryRunResult::kAllowed},
      {Refusal(403, "Forbidden",
               "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": hostPath "
               "volumes (volume \"cachewarm\")"),
       DryRunResult::kRefused},
      {Refusal(422, "Invalid", "Pod \"a\" is invalid: spec.volumes[1].name: Duplicate value"),
       DryRunResult::kRefused},
      {Refusal(400, "BadRequest", "admission webhook \"x\" denied the request"),
       DryRunResult::kRefused},
      {Refusal(403, "Forbidden", "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1"),
       DryRunResult::kUnknown},
      {Refusal(400, "BadRequest", "admission webhook \"x\" does not support dry run"),
       DryRunResult::kUnknown},
      {Refusal(500, "InternalError", "failed calling webhook \"x\": no endpoints"),
       DryRunResult::kUnknown},
      {Refusal(403, "Forbidden", "User \"op\" cannot create resource \"pods\" in API group"),
       DryRunResult::kUnknown},
      {Refusal(403, "Forbidden", "unable to create new content because it is being terminated"),
       DryRunResult::kUnknown},
      {Refusal(429, "TooManyRequests", "slow down"), DryRunResult::kUnknown},
      {Refusal(401, "Unauthorized", "who are you"), DryRunResult::kUnknown},
      {absl::UnavailableError("connection refused"), DryRunResult::kUnknown},
      {absl::DeadlineExceededError("silence"), DryRunResult::kUnknown},
      {absl::CancelledError("stopping"), DryRunResult::kUnknown},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Classify(test.status), test.expected) << test.status;
  }
}

class DryRunsTest : public ::testing::Test {
 protected:
  DryRunsTest() : server(clock), dry_runs(server, clock) {
    codec::Json unmodified = op::testing::PodObject("");
    unmodified["metadata"].erase("name");
    unmodified["metadata"]["generateName"] = "dry-run-";
    codec::Json injected = unmodified;
    injected["spec"]["volumes"] = {{{"name", "cachewarm"}, {"hostPath", {{"path", "/x"}}}}};
    request.fingerprint = "f1";
    request.unmodified = std::make_shared<const codec::Json>(unmodified);
    request.injected = std::make_shared<const codec::Json>(injected);
  }

  // The server rejects injected pods, or all pods.
  void Refuse(bool all) {
    server.OnWrite([all](const kube::Request&, codec::Json& pod) {
      const bool rejected = pod["spec"].contains("volumes");
      return all || rejected ? Refusal(403, "Forbidden", "violates PodSecurity") : absl::OkStatus();
    });
  }

  model::AdmissionDryRun Run() { return dry_runs.Run("uid-1", "default", request, {}); }

  fakes::FakeClock clock;
  fakes::FakeApiServer server;
  DryRuns dry_runs;
  model::DryRunRequest request;
};

TEST_F(DryRunsTest, AllowedBothWays) {
  const model::AdmissionDryRun result = Run();
  EXPECT_EQ(result.unmodified, DryRunResult::kAllowed);
  EXPECT_EQ(result.injected, DryRunResult::kAllowed);
  EXPECT_EQ(result.fingerprint, "f1");
  EXPECT_EQ(result.time, clock.Now());
  EXPECT_EQ(result.message, "");
  EXPECT_TRUE(server.All(kube::kPods).empty()) << "a dry run stored a pod";
}

TEST_F(DryRunsTest, InjectedPodRejectionKeepsServerMessage) {
  Refuse(false);
  const model::AdmissionDryRun result = Run();
  EXPECT_EQ(result.unmodified, DryRunResult::kAllowed);
  EXPECT_EQ(result.injected, DryRunResult::kRefused);
  EXPECT_NE(result.message.find("violates PodSecurity"), std::string::npos);
}

TEST_F(DryRunsTest, UnmodifiedPodRejectionProvesNothing) {
  Refuse(true);
  const model::AdmissionDryRun result = Run();
  EXPECT_EQ(result.unmodified, DryRunResult::kRefused);
  EXPECT_EQ(result.injected, DryRunResult::kUnknown);
}

TEST_F(DryRunsTest, KeepsLastResultOfEachWarmup) {
  EXPECT_EQ(dry_runs.Last("uid-1").fingerprint, "");
  Run();
  EXPECT_EQ(dry_runs.Last("uid-1").injected, DryRunResult::kAllowed);
  EXPECT_EQ(dry_runs.Last("uid-2").fingerprint, "");
  dry_runs.Forget("uid-1");
  EXPECT_EQ(dry_runs.Last("uid-1").fingerprint, "");
}

TEST_F(DryRunsTest, RerunWaitsForInterval) {
  EXPECT_FALSE(dry_runs.Rerun("uid-1", "default", seconds(15), {}).has_value());
  Run();
  EXPECT_FALSE(dry_runs.Rerun("uid-1", "default", seconds(15), {}).has_value());
  clock.Advance(seconds(15));
  Refuse(false);
  const auto result = dry_runs.Rerun("uid-1", "default", seconds(15), {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->injected, DryRunResult::kRefused);
  EXPECT_EQ(dry_runs.Last("uid-1").injected, DryRunResult::kRefused);
}

TEST_F(DryRunsTest, SendsOnlyDryRuns) {
  int real = 0;
  server.Intercept([&](const kube::Request& request) {
    real += request.query.find("dryRun=All") == std::string::npos ? 1 : 0;
    return absl::OkStatus();
  });
  Run();
  EXPECT_EQ(real, 0);
}

}  // namespace
}  // namespace cachewarm::dry_run
