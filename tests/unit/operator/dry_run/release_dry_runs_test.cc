// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/release_dry_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/dry_run/dry_runs.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::dry_run {
namespace {

using op::testing::HeldPodObject;
using op::testing::PodObject;
using std::chrono::minutes;
using ::testing::HasSubstr;

class ReleaseDryRunsTest : public ::testing::Test {
 protected:
  ReleaseDryRunsTest()
      : server(clock),
        refusals(clock, [this](const std::string& ns) { changed.push_back(ns); }),
        dry_runs({.client = server, .clock = clock, .refusals = refusals}) {}

  api::Pod Stored(const codec::Json& pod) {
    return api::DecodePod(server.Put(kube::kPods, pod)).value();
  }
  // A policy rejects updates of pods.
  void Freeze() {
    server.OnWrite([](const kube::Request&, codec::Json&) {
      return absl::PermissionDeniedError("pods of this namespace are frozen");
    });
  }
  int Patches() const {
    const std::vector<std::string> all = server.Requests();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const std::string& request) {
      return request.starts_with("patch pods");
    }));
  }

  fakes::FakeClock clock;
  fakes::FakeApiServer server;
  std::vector<std::string> changed;  // namespaces whose refusals changed
  apply::ReleaseRefusals refusals;
  ReleaseDryRuns dry_runs;
};

TEST_F(ReleaseDryRunsTest, RejectedReleaseOfAHeldPodIsRecorded) {
  const api::Pod pod = Stored(HeldPodObject("a", "llama"));
  Freeze();
  dry_runs.Run(pod, {});
  EXPECT_THAT(refusals.Of("default").message, HasSubstr("frozen"));
  EXPECT_EQ(changed, std::vector<std::string>{"default"});
}

TEST_F(ReleaseDryRunsTest, DryRunReleasesNoPod) {
  const api::Pod pod = Stored(HeldPodObject("a", "llama"));
  const codec::Json before = *server.Find(kube::kPods, {"default", "a"});
  std::string released;
  server.OnWrite([&](const kube::Request& request, codec::Json& after) {
    EXPECT_THAT(request.query, HasSubstr("dryRun=All"));
    EXPECT_FALSE(request.idempotent) << "the client would send it again";
    released = codec::DumpJson(after["spec"].value("schedulingGates", codec::Json::array()));
    return absl::OkStatus();
  });
  dry_runs.Run(pod, {});
  EXPECT_EQ(released, "[]") << "the gate is removed in the dry run";
  EXPECT_EQ(*server.Find(kube::kPods, {"default", "a"}), before);
  EXPECT_EQ(refusals.Of("default").message, "");
}

TEST_F(ReleaseDryRunsTest, PodWithoutAGateGetsAnUpdateThatChangesNothing) {
  const api::Pod pod = Stored(PodObject("a"));
  const codec::Json before = *server.Find(kube::kPods, {"default", "a"});
  int updates = 0;
  server.OnWrite([&](const kube::Request&, codec::Json& after) {
    ++updates;
    EXPECT_EQ(after["spec"], before["spec"]);
    EXPECT_EQ(after["metadata"]["annotations"],
              before["metadata"].value("annotations", codec::Json()));
    return absl::PermissionDeniedError("frozen");
  });
  dry_runs.Run(pod, {});
  EXPECT_EQ(updates, 1);
  EXPECT_THAT(refusals.Of("default").message, HasSubstr("frozen"));
}

TEST_F(ReleaseDryRunsTest, NamespaceGetsOneDryRunAnHour) {
  const api::Pod one = Stored(HeldPodObject("a", "llama"));
  const api::Pod other = Stored(HeldPodObject("b", "mistral"));
  for (const api::Pod& pod : {one, other, one}) {
    dry_runs.Run(pod, {});
    EXPECT_FALSE(dry_runs.IsDue(pod));
  }
  EXPECT_EQ(Patches(), 1);
  clock.Advance(minutes(60));
  dry_runs.Run(other, {});
  EXPECT_EQ(Patches(), 2);
}

TEST_F(ReleaseDryRunsTest, FirstHeldPodGetsADryRunOfItsOwn) {
  dry_runs.Run(Stored(PodObject("a")), {});
  const api::Pod held = Stored(HeldPodObject("b", "llama"));
  server.OnWrite([](const kube::Request&, codec::Json& after) {
    return after["metadata"]["name"] == "b" ? absl::PermissionDeniedError("gates stay")
                                            : absl::OkStatus();
  });
  EXPECT_TRUE(dry_runs.IsDue(held)) << "a policy may reject the release alone";
  dry_runs.Run(held, {});
  EXPECT_THAT(refusals.Of("default").message, HasSubstr("gates stay"));
  EXPECT_EQ(Patches(), 2);
}

TEST_F(ReleaseDryRunsTest, FailingWebhookShowsNothingAndIsAskedAgainAfterAMinute) {
  const api::Pod pod = Stored(HeldPodObject("a", "llama"));
  server.OnWrite([](const kube::Request&, codec::Json&) {
    return absl::InternalError("failed calling webhook \"x\": no endpoints");
  });
  dry_runs.Run(pod, {});
  EXPECT_EQ(refusals.Of("default").message, "");
  EXPECT_FALSE(dry_runs.IsDue(pod));
  clock.Advance(minutes(1));
  EXPECT_TRUE(dry_runs.IsDue(pod));
}

TEST_F(ReleaseDryRunsTest, SilentWebhookEndsTheDryRunAfterThreeSeconds) {
  codec::Json object = HeldPodObject("a", "llama");
  object["metadata"]["namespace"] = "team";
  const api::Pod pod = Stored(object);
  op::testing::HangingClient hanging(server, "team");
  ReleaseDryRuns runs({.client = hanging, .clock = clock, .refusals = refusals});
  CutShort(hanging, clock, 1, std::async(std::launch::async, [&] {
             runs.Run(pod, {});
             return true;
           }));
  EXPECT_EQ(hanging.tries(), 1) << "without retries";
  EXPECT_EQ(refusals.Of("team").message, "");
}

TEST_F(ReleaseDryRunsTest, PodThatChangedMeanwhileShowsNothing) {
  codec::Json object = HeldPodObject("a", "llama");
  const api::Pod pod = Stored(object);
  const auto rejection_after = [&](const std::function<void(codec::Json&)>& change) {
    codec::Json changed_pod = object;
    change(changed_pod);
    server.Put(kube::kPods, changed_pod);
    clock.Advance(minutes(1));
    dry_runs.Run(pod, {});
    return refusals.Of("default").message;
  };
  EXPECT_EQ(rejection_after([](codec::Json& other) { other["metadata"]["uid"] = "new"; }), "");
  EXPECT_EQ(rejection_after([](codec::Json& other) { other["spec"].erase("schedulingGates"); }),
            "");
  EXPECT_EQ(rejection_after([](codec::Json& other) {
              codec::Json& gates = other["spec"]["schedulingGates"];
              gates.insert(gates.begin(), {{"name", "example.com/other"}});
            }),
            "");
  EXPECT_EQ(Patches(), 3);
}

TEST_F(ReleaseDryRunsTest, RejectionIsConfirmedBeforeItExpires) {
  const api::Pod pod = Stored(HeldPodObject("a", "llama"));
  EXPECT_EQ(dry_runs.ConfirmAfter("default"), std::nullopt);
  Freeze();
  dry_runs.Run(pod, {});
  const WallTime first = refusals.Of("default").time;
  const std::optional<Duration> after = dry_runs.ConfirmAfter("default");
  ASSERT_TRUE(after.has_value());
  EXPECT_LT(*after, model::kReleaseRefusalLasts);
  EXPECT_FALSE(dry_runs.IsDue(pod));
  clock.Advance(*after);
  EXPECT_TRUE(dry_runs.IsDue(pod));
  dry_runs.Run(pod, {});
  EXPECT_GT(refusals.Of("default").time, first);
  EXPECT_EQ(changed.size(), 1U) << "it was rejected all the time";
}

TEST_F(ReleaseDryRunsTest, AcceptedReleaseOfAHeldPodEndsTheRejection) {
  const api::Pod held = Stored(HeldPodObject("a", "llama"));
  const api::Pod running = Stored(PodObject("b"));
  Freeze();
  dry_runs.Run(held, {});
  server.OnWrite(nullptr);
  clock.Advance(*dry_runs.ConfirmAfter("default"));
  dry_runs.Run(running, {});
  EXPECT_THAT(refusals.Of("default").message, HasSubstr("frozen"))
      << "an update without a change shows nothing about the gate";
  dry_runs.Run(held, {});
  EXPECT_EQ(refusals.Of("default").message, "");
  EXPECT_EQ(changed.size(), 2U);
}

}  // namespace
}  // namespace cachewarm::dry_run
