// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/dry_runs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/dry_run/dry_run_queue.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/unit/operator/hanging_client.h"
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

TEST_F(DryRunsTest, ResultHasTheContainerAsAdmissionChangedIt) {
  request.revision = "t-1";
  request.container = "server";
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    codec::Json& container = pod["spec"]["containers"][0];
    container["image"] = "mirror.example/llama:1";
    container["resources"]["limits"] = {{"nvidia.com/gpu", "2"}};
    return absl::OkStatus();
  });
  EXPECT_EQ(
      Run().admitted,
      (api::AdmittedContainer{.revision = "t-1", .image = "mirror.example/llama:1", .devices = 2}));
  EXPECT_EQ(dry_runs.Last("uid-1").admitted->revision, "t-1");
}

TEST_F(DryRunsTest, ResultHasNoContainerWithoutAValidAnswer) {
  request.container = "server";
  Refuse(true);
  EXPECT_FALSE(Run().admitted.has_value()) << "the pod was rejected";
  for (const std::string& image : {std::string(), std::string(1025, 'x')}) {
    server.OnWrite([&](const kube::Request&, codec::Json& pod) {
      pod["spec"]["containers"][0]["image"] = image;
      return absl::OkStatus();
    });
    EXPECT_FALSE(Run().admitted.has_value()) << image.size();
  }
  server.OnWrite(nullptr);
  request.container = "another";
  EXPECT_FALSE(Run().admitted.has_value()) << "no such container";
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

TEST_F(DryRunsTest, FailureOfAWebhookIsNotRetried) {
  int sent = 0;
  server.Intercept([&](const kube::Request& request) {
    ++sent;
    EXPECT_FALSE(request.idempotent) << "the client would send it again";
    return absl::UnavailableError("failed calling webhook");
  });
  EXPECT_EQ(Run().injected, DryRunResult::kUnknown);
  EXPECT_EQ(sent, 2);
}

TEST_F(DryRunsTest, SilentWebhookEndsTheDryRunAfterThreeSeconds) {
  op::testing::HangingClient hanging(server, "team");
  DryRuns runs(hanging, clock);
  const model::AdmissionDryRun result = CutShort(
      hanging, clock, 1,
      std::async(std::launch::async, [&] { return runs.Run("uid-1", "team", request, {}); }));
  EXPECT_EQ(result.unmodified, DryRunResult::kUnknown);
  EXPECT_EQ(result.injected, DryRunResult::kUnknown);
  EXPECT_EQ(hanging.tries(), 2) << "without retries";
}

// ---- the queue ----------------------------------------------------------------------------------

class DryRunQueueTest : public DryRunsTest {
 protected:
  DryRunQueueTest()
      : keys(clock),
        queue({.dry_runs = dry_runs,
               .releases = releases,
               .queue = keys,
               .clock = clock,
               .on_result = [this](const std::string& name, const model::AdmissionDryRun&) {
                 results.push_back(name);
               }}) {
    warmup.ns = "default";
    warmup.name = "llama";
    warmup.uid = "uid-1";
  }

  void Drain() {
    while (keys.size() > 0) {
      const auto key = keys.Get({});
      EXPECT_TRUE(queue.Reconcile(*key, {}).ok());
      keys.Done(*key);
    }
  }

  api::CacheWarmup warmup;
  kube::WorkQueue keys;
  apply::ReleaseRefusals refusals{clock, [](const std::string&) {}};
  ReleaseDryRuns releases{{.client = server, .clock = clock, .refusals = refusals}};
  DryRunQueue queue;
  std::vector<std::string> results;
};

TEST_F(DryRunQueueTest, RequestReturnsBeforeTheDryRun) {
  queue.Request(warmup, request);
  EXPECT_EQ(dry_runs.Last("uid-1").fingerprint, "");
  Drain();
  EXPECT_EQ(dry_runs.Last("uid-1").fingerprint, "f1");
  EXPECT_EQ(results, std::vector<std::string>{"default/llama"});
}

TEST_F(DryRunQueueTest, NewerRequestReplacesTheWaitingOne) {
  queue.Request(warmup, request);
  request.fingerprint = "f2";
  queue.Request(warmup, request);
  Drain();
  EXPECT_EQ(dry_runs.Last("uid-1").fingerprint, "f2");
  EXPECT_EQ(results.size(), 1U);
}

TEST_F(DryRunQueueTest, RequestThatWasAnsweredMeanwhileIsDropped) {
  queue.Request(warmup, request);
  clock.Advance(seconds(1));
  Run();
  Drain();
  EXPECT_TRUE(results.empty());
}

TEST_F(DryRunQueueTest, RepetitionWaitsForItsInterval) {
  queue.Request(warmup, request);
  Drain();
  queue.RequestAgain(warmup, seconds(15));
  Drain();
  EXPECT_EQ(results.size(), 1U);
  clock.Advance(seconds(15));
  queue.RequestAgain(warmup, seconds(15));
  Drain();
  EXPECT_EQ(results.size(), 2U);
}

TEST_F(DryRunQueueTest, ReleaseIsTriedBeforeTheCreation) {
  const auto pod = std::make_shared<const api::Pod>(
      api::DecodePod(server.Put(kube::kPods, op::testing::HeldPodObject("a", "llama"))).value());
  queue.RequestRelease(warmup, pod);
  queue.Request(warmup, request);
  std::vector<std::string> sent;
  server.OnWrite([&](const kube::Request& each, codec::Json&) {
    sent.push_back(each.verb);
    return absl::OkStatus();
  });
  Drain();
  EXPECT_EQ(sent, (std::vector<std::string>{"patch", "create", "create"}));
  queue.RequestRelease(warmup, pod);
  Drain();
  EXPECT_EQ(results.size(), 1U) << "a dry run of a release alone repeats no creation";
  EXPECT_EQ(sent.size(), 3U) << "the answer is known";
}

TEST_F(DryRunQueueTest, TenWarmupsBehindASilentWebhookDelayNoOther) {
  op::testing::HangingClient hanging(server, "team");
  DryRuns runs(hanging, clock);
  std::atomic<bool> done = false;
  kube::WorkQueue shared_keys(clock, {}, kDryRunLanes);
  DryRunQueue shared({.dry_runs = runs,
                      .releases = releases,
                      .queue = shared_keys,
                      .clock = clock,
                      .on_result = [&](const std::string& name, const model::AdmissionDryRun&) {
                        done = done || name == "default/llama";
                      }});
  fakes::MemoryLog log;
  std::stop_source stop;
  std::jthread controller([&] {
    kube::Controller(
        shared_keys, clock, log,
        {.name = "dry_runs", .workers = static_cast<int>(kDryRunLanes.usual + kDryRunLanes.slow)},
        [&](const std::string& key, std::stop_token ending) {
          return shared.Reconcile(key, std::move(ending));
        })
        .Run(stop.get_token());
  });
  for (int i = 0; i < 10; ++i) {
    shared.Request({.ns = "team", .name = "w" + std::to_string(i), .uid = std::to_string(i)},
                   request);
  }
  const int usual = static_cast<int>(kDryRunLanes.usual);
  fakes::Await([&] { return hanging.under_way() == usual; });
  clock.Advance(kube::NamespaceLanes::kSlowAfter);
  fakes::Await([&] { return hanging.under_way() == 10; });
  shared.Request(warmup, request);
  fakes::Await([&] { return done.load(); });
  EXPECT_TRUE(done);
  EXPECT_EQ(hanging.under_way(), 10);
  stop.request_stop();
}

}  // namespace
}  // namespace cachewarm::dry_run
