// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "lib/codec/json_path.h"
#include "tests/unit/operator/apply/executor_fixture.h"

namespace cachewarm::apply {
namespace {

using op::testing::HeldPodObject;
using ::testing::HasSubstr;

TEST_F(ExecutorTest, ReleasesManyPodsAndCountsEachOnce) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back({.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")),
                             .reason = "ReleasedWarm",
                             .held_seconds = 3});
  }
  ASSERT_TRUE(Execute().ok());
  ASSERT_TRUE(Execute().ok()) << "a removed gate is no error";
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(IsHeld("p" + std::to_string(i)));
  }
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"ReleasedWarm\"}"),
            60);
  EXPECT_EQ(Metric("cachewarm_hold_seconds_count{namespace=\"default\",warmup=\"llama\"}"), 60);
}

TEST_F(ExecutorTest, HangingPodsOccupySlotsOnlyBriefly) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back({.pod = Hanging("p" + std::to_string(i)), .reason = "ReleasedWarm"});
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(ExecuteThough(16)));
  EXPECT_LT(hanging.tries(), 30) << "16 at first, then few";
  EXPECT_FALSE(ExecuteThough(1).ok());
  EXPECT_LT(hanging.tries(), 40);
  hanging.Answer();
  EXPECT_TRUE(op::testing::Eventually([&] { return Execute().ok(); }));
  for (const model::GateRelease& release : plan.releases) {
    EXPECT_FALSE(
        observe::IsHeldAtGate(*server.Find(kube::kPods, {"team", release.pod->meta.name})));
  }
}

TEST_F(ExecutorTest, BuilderIsReleasedFirst) {
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("builder", "llama")), .reason = "ReleasedForBuild"});
  for (int i = 0; i < 20; ++i) {
    plan.releases.push_back({.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")),
                             .reason = "ReleasedNoCapacity"});
  }
  bool is_through = false;
  int early = 0;
  server.OnWrite([&](const kube::Request& request, codec::Json&) {
    is_through = is_through || request.path.ends_with("/builder");
    early += is_through ? 0 : 1;
    return absl::OkStatus();
  });
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(early, 0);
  EXPECT_FALSE(IsHeld("p19"));
}

TEST_F(ExecutorTest, FailedBuilderReleaseBlocksNoOtherPod) {
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("builder", "llama")), .reason = "ReleasedForBuild"});
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedNoCapacity"});
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.ends_with("/builder") ? absl::UnavailableError("no") : absl::OkStatus();
  });
  EXPECT_FALSE(Execute().ok());
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(ExecutorTest, OnlyReleasedPodsGetEvents) {
  for (const char* name : {"a", "b"}) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject(name, "llama")),
         .reason = "ReleasedWarm",
         .event = model::EventRequest{.regarding = {.kind = "Pod", .name = name},
                                      .reason = "ReleasedWarm",
                                      .action = "Gate"}});
  }
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.ends_with("/b") ? absl::UnavailableError("no") : absl::OkStatus();
  });
  EXPECT_FALSE(Execute().ok());
  ASSERT_EQ(events.Count("ReleasedWarm"), 1);
  EXPECT_EQ(kube::NameOf(*events.All()[0].regarding).name, "a");
}

TEST_F(ExecutorTest, ReleaseAddsReasonAndNodePreference) {
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")),
                           .reason = "ReleasedWarm",
                           .held_seconds = 3,
                           .preferred = {"n1"},
                           .excluded = {"n9"}});
  ASSERT_TRUE(Execute().ok());
  const codec::Json pod = *server.Find(kube::kPods, {"default", "a"});
  EXPECT_EQ(pod["metadata"]["annotations"]["cachewarm.io/released"], "ReleasedWarm");
  EXPECT_THAT(pod["spec"]["affinity"].dump(), HasSubstr("\"n1\""));
  EXPECT_THAT(pod["spec"]["affinity"].dump(), HasSubstr("NotIn"));
}

class RejectedAffinity : public ExecutorTest, public testing::WithParamInterface<absl::StatusCode> {
 protected:
  RejectedAffinity() {
    server.OnWrite([](const kube::Request&, codec::Json& object) {
      return codec::At(object, {"spec", "affinity"}) == nullptr
                 ? absl::OkStatus()
                 : absl::Status(GetParam(), "affinity is immutable");
    });
  }
  model::GateRelease Release(std::vector<std::string> excluded) {
    return {.pod = Stored(HeldPodObject("a", "llama")),
            .reason = "ReleasedWarm",
            .preferred = {"n1"},
            .excluded = std::move(excluded)};
  }
};
INSTANTIATE_TEST_SUITE_P(All, RejectedAffinity,
                         testing::Values(absl::StatusCode::kInvalidArgument,
                                         absl::StatusCode::kPermissionDenied),
                         [](const auto& each) { return absl::StatusCodeToString(each.param); });

TEST_P(RejectedAffinity, RejectedPreferenceIsDropped) {
  plan.releases = {Release({})};
  EXPECT_TRUE(Execute().ok());
  EXPECT_FALSE(IsHeld("a"));
  const codec::Json pod = *server.Find(kube::kPods, {"default", "a"});
  EXPECT_FALSE(pod["spec"].contains("affinity"));
  EXPECT_EQ(pod["metadata"]["annotations"]["cachewarm.io/released"], "ReleasedWarm");
}

TEST_P(RejectedAffinity, RejectedExclusionKeepsPodHeldUntilNextPlan) {
  plan.releases = {Release({"n9"})};
  plan.jobs_to_create = {JobNamed("j")};
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(rejected, 1U);
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_TRUE(log.Has("affinity is immutable"));
  EXPECT_NE(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, RejectedReleaseIsLoggedAndRetried) {
  server.OnWrite([](const kube::Request&, codec::Json&) {
    return absl::PermissionDeniedError("this namespace is frozen");
  });
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm", .preferred = {"n1"}});
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(rejected, 1U);
  EXPECT_TRUE(log.Has("this namespace is frozen"));
  EXPECT_TRUE(IsHeld("a"));
}

TEST_F(ExecutorTest, RejectedReleaseIsRememberedForTheNamespaceUntilOneSucceeds) {
  bool frozen = true;
  server.OnWrite([&](const kube::Request&, codec::Json&) {
    return frozen ? absl::PermissionDeniedError("this namespace is frozen") : absl::OkStatus();
  });
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  EXPECT_TRUE(Execute().ok());
  EXPECT_TRUE(Execute().ok());
  EXPECT_THAT(release_refusals.Of("default").message,
              testing::HasSubstr("this namespace is frozen"));
  EXPECT_EQ(release_refusals.Of("team").time, WallTime{});
  EXPECT_EQ(changed, (std::vector<std::string>{"default"}));
  frozen = false;
  EXPECT_TRUE(Execute().ok());
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_EQ(release_refusals.Of("default").time, WallTime{});
  EXPECT_EQ(changed, (std::vector<std::string>{"default", "default"}));
}

TEST_F(ExecutorTest, RejectedExclusionOfANodeIsNoRejectedRelease) {
  server.OnWrite([](const kube::Request&, codec::Json&) {
    return absl::InvalidArgumentError("affinity is immutable");
  });
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm", .excluded = {"n9"}});
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(release_refusals.Of("default").time, WallTime{});
}

TEST_F(ExecutorTest, GateThatMovedIsNoRejectedRelease) {
  codec::Json pod = HeldPodObject("a", "llama");
  codec::Json& gates = pod["spec"]["schedulingGates"];
  const codec::Json other = {{"name", "kueue.x-k8s.io/admission"}};
  gates.insert(gates.begin(), other);
  plan.releases.push_back({.pod = Stored(pod), .reason = "ReleasedWarm", .preferred = {"n1"}});
  server.Edit(kube::kPods, {"default", "a"}, [](codec::Json& stored) {
    codec::Json& list = stored["spec"]["schedulingGates"];
    list.erase(list.begin());
  });
  EXPECT_TRUE(absl::IsAborted(Execute()));
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_EQ(release_refusals.Of("default").time, WallTime{});
  EXPECT_TRUE(changed.empty());
}

TEST_F(ExecutorTest, GateThatIsGoneIsNoRejectedRelease) {
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  server.Edit(kube::kPods, {"default", "a"},
              [](codec::Json& stored) { stored["spec"].erase("schedulingGates"); });
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(release_refusals.Of("default").time, WallTime{});
}

TEST_F(ExecutorTest, ReplacedPodIsSkippedWithoutError) {
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm", .preferred = {"n1"}});
  server.Edit(kube::kPods, {"default", "a"},
              [](codec::Json& pod) { pod["metadata"]["uid"] = "another"; });
  EXPECT_TRUE(Execute().ok());
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"ReleasedWarm\"}"),
            -1);
}

TEST_F(ExecutorTest, ReleaseLogsReasonAndCountsHoldTime) {
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("p7", "llama")), .reason = "NoRoom", .held_seconds = 7});
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("p8", "llama")), .reason = "Warm", .held_seconds = 4});
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(Metric("cachewarm_hold_seconds_sum{namespace=\"default\",warmup=\"llama\"}"), 11);
  const auto line_of = [&](const std::string& pod) {
    std::stringstream lines(log.Text());
    for (std::string line; std::getline(lines, line);) {
      if (line.find(pod) != std::string::npos) {
        return line;
      }
    }
    return std::string();
  };
  EXPECT_THAT(line_of("p7"), HasSubstr("pod released"));
  EXPECT_THAT(line_of("p7"), HasSubstr("\"NoRoom\""));
  EXPECT_THAT(line_of("p8"), HasSubstr("\"Warm\""));
}

}  // namespace
}  // namespace cachewarm::apply
