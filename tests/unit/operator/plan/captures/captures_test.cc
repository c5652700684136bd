// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::CaptureState;
using fakes::At;
using fakes::HasEvent;
using fakes::SnapshotBuilder;

// A builder "a" on n1, elected at 100, with a requested capture.
class Handshake : public testing::Test {
 protected:
  Handshake() {
    builder.Node({.name = "n1"}).Node({.name = "n2"});
    builder.Accepted();
    builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
    Apply(builder.Decide());
  }

  void Apply(const Plan& plan) {
    builder.status() = plan.status;
    for (const NodeEntries& wants : plan.nodes) {
      builder.cache(wants.node).spec = wants.spec;
    }
  }

  std::string Id(int attempt) {
    return "uid-a-" + builder.Key("n1").substr(0, 8) + "-" + std::to_string(attempt);
  }

  void Answer(const api::CaptureStatus& answer) { builder.cache("n1").status.captures = {answer}; }

  api::CaptureStatus Pushed() {
    return {.id = Id(1),
            .state = CaptureState::kPushed,
            .digest = fakes::DigestNamed("c"),
            .bytes = 1234,
            .files = 9,
            .native = true,
            .compile_seconds = 21.5};
  }

  void Ready(int at) {
    builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = at});
    builder.Now(at + 1);
    Apply(builder.Decide());
  }

  SnapshotBuilder builder;
};

TEST_F(Handshake, RequestIncludesReadyTime) {
  Ready(110);
  ASSERT_EQ(builder.cache("n1").spec.captures.size(), 1U);
  EXPECT_EQ(builder.cache("n1").spec.captures[0].id, Id(1));
  EXPECT_EQ(builder.cache("n1").spec.captures[0].ready_time, At(110));
}

TEST_F(Handshake, PushedBundleIsRecordedAndRequestRemovedInOnePlan) {
  Ready(110);
  Answer(Pushed());
  builder.Now(130);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  const api::BundleStatus& bundle = plan.status.bundles[0];
  EXPECT_EQ(bundle.key, builder.Key("n1"));
  EXPECT_EQ(bundle.digest, fakes::DigestNamed("c"));
  EXPECT_EQ(bundle.bytes, 1234);
  EXPECT_EQ(bundle.builder_pod, "a");
  EXPECT_EQ(bundle.published_time, At(130));
  EXPECT_DOUBLE_EQ(bundle.compile_seconds, 21.5);
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kCaptured);
  EXPECT_TRUE(HasEvent(plan, "Published"));
  ASSERT_EQ(plan.builds_finished.size(), 1U);
  EXPECT_EQ(plan.builds_finished[0].reason, "Captured");
  ASSERT_NE(fakes::EntriesOf(plan, "n1"), nullptr);
  EXPECT_TRUE(fakes::EntriesOf(plan, "n1")->spec.captures.empty());
  // The same plan distributes the bundle to every fitting node.
  for (const char* node : {"n1", "n2"}) {
    ASSERT_NE(fakes::EntriesOf(plan, node), nullptr);
    ASSERT_EQ(fakes::EntriesOf(plan, node)->spec.warmups[0].bundles.size(), 1U);
    EXPECT_EQ(fakes::EntriesOf(plan, node)->spec.warmups[0].bundles[0].digest,
              fakes::DigestNamed("c"));
  }
}

TEST_F(Handshake, BundleHasTheFactorsOfTheBuildersStart) {
  builder.in().factor_salt = "0123456789abcdef0123456789abcdef";
  builder.cache("n1").status.node.driver = "570.12";
  Ready(110);
  for (auto& pod : builder.in().pods) {
    codec::Json object = *pod->object;
    object["startedContainers"] = {{{"name", "server"}, {"args", {"--dtype", "half"}}}};
    api::Pod changed = *pod;
    changed.object = std::make_shared<const codec::Json>(std::move(object));
    pod = std::make_shared<const api::Pod>(std::move(changed));
  }
  Answer(Pushed());
  builder.Now(130);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  std::map<std::string, std::string> factors;
  for (const api::StartFactor& each : plan.status.bundles[0].factors) {
    factors[each.name] = each.value;
  }
  EXPECT_EQ(factors["driver"], "570.12");
  EXPECT_EQ(factors["image"], "server:1");
  EXPECT_EQ(factors["node"], "n1");
  EXPECT_TRUE(factors["args/--dtype"].starts_with("h:")) << factors["args/--dtype"];
}

TEST_F(Handshake, FilesThatNoCacheKindNamesAreInTheMessageOfTheBuilder) {
  Ready(110);
  api::CaptureStatus pushed = Pushed();
  pushed.left_behind = {.files = 3, .bytes = 10'000'000, .directories = {"new_engine/a", "b"}};
  Answer(pushed);
  builder.Now(130);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kCaptured);
  EXPECT_EQ(plan.status.builders[0].message,
            "the bundle lacks 3 files (10000000 bytes) of pod a that match no cache kind, in "
            "new_engine/a, b; add a custom cache to spec.caches if an engine reads them");
}

TEST_F(Handshake, PackingIsShownAsCapturing) {
  Ready(110);
  Answer({.id = Id(1), .state = CaptureState::kPacking});
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kCapturing);
}

struct PushCase {
  const char* name;
  fakes::PodSetup pod;  // state of "a" when the agent reports Pushed; no name: deleted
  const char* reason;   // of the failed build; "": not recorded, the build continues
};

class UntrustedPush : public Handshake, public testing::WithParamInterface<PushCase> {};

TEST_P(UntrustedPush, PushIsRecordedOnlyForUnchangedBuilder) {
  Ready(110);
  Answer(Pushed());
  builder.in().pods.clear();
  if (!GetParam().pod.name.empty()) {
    builder.Pod(GetParam().pod);
  }
  builder.Now(130);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status.bundles.empty());
  const api::BuilderStatus& entry = plan.status.builders[0];
  if (GetParam().reason[0] == '\0') {
    EXPECT_NE(entry.state, BuilderState::kFailed);
  } else {
    EXPECT_NE(entry.state, BuilderState::kCaptured);
    EXPECT_TRUE(HasEvent(plan, GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, UntrustedPush,
    testing::Values(
        PushCase{"gone", {}, "BuilderLost"},
        PushCase{"moved", {.name = "a", .node = "n2", .started = 90, .ready = 110}, "BuilderLost"},
        PushCase{"restarted",
                 {.name = "a", .node = "n1", .started = 120, .ready = 125, .restarts = 1},
                 "BuilderRestarted"},
        PushCase{"crashed",
                 {.name = "a", .node = "n1", .restarts = 1, .words = "CrashLoopBackOff"},
                 "BuilderCrashed"},
        PushCase{"exited", {.name = "a", .node = "n1", .exit_code = 137}, "BuilderCrashed"},
        PushCase{"other_image",
                 {.name = "a", .node = "n1", .image = "x:2", .started = 90, .ready = 110},
                 "BuilderLost"},
        PushCase{"not_ready", {.name = "a", .node = "n1", .started = 90}, ""}),
    [](const auto& each) { return each.param.name; });

TEST_F(Handshake, PushWithoutDigestIsIgnored) {
  Ready(110);
  api::CaptureStatus answer = Pushed();
  answer.digest = {};
  Answer(answer);
  EXPECT_TRUE(builder.Decide().status.bundles.empty());
}

TEST_F(Handshake, AnswerToAnotherRequestIsIgnored) {
  Ready(110);
  api::CaptureStatus answer = Pushed();
  answer.id = Id(2);
  Answer(answer);
  EXPECT_TRUE(builder.Decide().status.bundles.empty());
}

// The agent was restarted and the GPU driver has not answered yet.
TEST_F(Handshake, BuilderStaysWhileTheGpuOfItsNodeIsUnknown) {
  Ready(110);
  builder.cache("n1").status.node.gpu_type = "";
  const Plan plan = builder.Decide();
  EXPECT_FALSE(HasEvent(plan, "BuilderLost"));
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_NE(plan.status.builders[0].state, BuilderState::kFailed);
}

TEST_F(Handshake, AnswerFromNodeWithChangedFactsIsIgnored) {
  Ready(110);
  Answer(Pushed());
  const std::string before = Id(1);
  builder.cache("n1").status.node.cpu_class = fakes::kAvx2;
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status.bundles.empty()) << "the pod starts a new build for the other class";
  EXPECT_TRUE(HasEvent(plan, "BuilderLost"));
  ASSERT_NE(fakes::EntriesOf(plan, "n1"), nullptr);
  EXPECT_NE(fakes::EntriesOf(plan, "n1")->spec.captures.at(0).id, before);
}

TEST_F(Handshake, FailedCaptureFailsBuildWithAgentMessage) {
  Ready(110);
  Answer({.id = Id(1),
          .state = CaptureState::kFailed,
          .reason = "NothingToCapture",
          .message = "no file of a known cache was used"});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(plan.status.builders[0].reason, "NothingToCapture");
  EXPECT_EQ(plan.status.builders[0].message, "no file of a known cache was used");
}

TEST_F(Handshake, PublishFailureIsDegradedAndRetried) {
  Ready(110);
  Answer({.id = Id(1),
          .state = CaptureState::kFailed,
          .reason = "PublishFailed",
          .message = "registry: connection refused"});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kCapturing);
  EXPECT_EQ(fakes::ReasonOf(plan, "Degraded"), "StoreError");
  EXPECT_NE(fakes::Condition(plan, "Degraded")->message.find("refused"), std::string::npos);
  Apply(plan);
  EXPECT_EQ(builder.cache("n1").spec.captures.size(), 1U) << "the agent keeps trying";
  Answer(Pushed());
  const Plan later = builder.Decide();
  EXPECT_EQ(later.status.bundles.size(), 1U);
  EXPECT_EQ(fakes::ReasonOf(later, "Degraded"), "Healthy");
}

TEST_F(Handshake, UnreadyBuilderTimesOutFromContainerStart) {
  builder.Now(90 + 1799);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kElected);
  builder.Now(90 + 1800);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].reason, "BuilderTimeout");
  EXPECT_NE(plan.status.builders[0].message.find("compile.timeoutSeconds"), std::string::npos);
}

TEST_F(Handshake, UnsettledCaptureTimesOut) {
  Ready(110);
  Answer({.id = Id(1), .state = CaptureState::kWaiting});
  builder.Now(110 + 1800);
  EXPECT_EQ(builder.Decide().status.builders[0].reason, "CacheNotSettled");
}

TEST_F(Handshake, ReelectedPodGetsNewRequestId) {
  builder.Now(90 + 1800);
  Apply(builder.Decide());
  EXPECT_TRUE(builder.cache("n1").spec.captures.empty());
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 1895});
  builder.Now(1900);
  Apply(builder.Decide());
  ASSERT_EQ(builder.cache("n1").spec.captures.size(), 1U);
  EXPECT_EQ(builder.cache("n1").spec.captures[0].id, Id(2));
}

TEST_F(Handshake, ExhaustedBackoffIsDegradedWithLastMessage) {
  builder.warmup().spec.compile.backoff_limit = 0;
  builder.Now(90 + 1800);
  const Plan plan = builder.Decide();
  EXPECT_EQ(fakes::ReasonOf(plan, "Degraded"), "BuildFailed");
  EXPECT_NE(fakes::Condition(plan, "Degraded")->message.find("not ready 1800 s"),
            std::string::npos);
  EXPECT_FALSE(plan.status.injection->gate) << "a held pod has nothing to gain";
}

TEST_F(Handshake, PodWithoutProbeIsReadyAfterAMinute) {
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 91});
  builder.Now(149);
  const Plan plan = builder.Decide();
  Apply(plan);
  EXPECT_EQ(builder.cache("n1").spec.captures[0].ready_time, WallTime{});
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(1)) << "only the clock changes";
  builder.Now(150);
  Apply(builder.Decide());
  EXPECT_EQ(builder.cache("n1").spec.captures[0].ready_time, At(150));
}

struct EndCase {
  const char* name;
  WorkloadKind kind;
  const char* restart_policy;
  bool probe;
};

class RunToCompletionCapture : public Handshake, public testing::WithParamInterface<EndCase> {
 protected:
  RunToCompletionCapture() {
    builder.in().workload.kind = GetParam().kind;
    if (!GetParam().probe) {
      builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
    }
    fakes::PodSetup running = Running();
    running.ready = GetParam().probe ? std::nullopt : std::optional(91);
    builder.Pod(running);
  }

  static fakes::PodSetup Running() {
    return {.name = "a",
            .node = "n1",
            .created = 80,
            .started = 90,
            .restart_policy = GetParam().restart_policy,
            .probe = GetParam().probe};
  }
  void End(int time) {
    fakes::PodSetup ended = Running();
    ended.exit_code = 0;
    ended.ended = time;
    builder.Pod(ended);
  }
  // At `now`, for a container started at 90.
  void ExpectRequested(int now, WallTime ready_time) {
    builder.Now(now);
    Apply(builder.Decide());
    ASSERT_EQ(builder.cache("n1").spec.captures.size(), 1U);
    EXPECT_EQ(builder.cache("n1").spec.captures[0].started_time, At(90));
    EXPECT_EQ(builder.cache("n1").spec.captures[0].ready_time, ready_time);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, RunToCompletionCapture,
    testing::Values(EndCase{"job", WorkloadKind::kJob, "Never", false},
                    EndCase{"job_with_a_probe", WorkloadKind::kJob, "Never", true},
                    EndCase{"cron_job", WorkloadKind::kCronJob, "OnFailure", false},
                    EndCase{"selector", WorkloadKind::kSelector, "Never", false},
                    EndCase{"selector_restarts_failures", WorkloadKind::kSelector, "OnFailure",
                            false},
                    EndCase{"template", WorkloadKind::kTemplate, "Never", false}),
    [](const auto& each) { return each.param.name; });

// For a Job the exit counts. Other pods may run for days: they are ready a minute after their
// start, or at their exit if that is earlier.
TEST_P(RunToCompletionCapture, PodIsReadyAtItsExit) {
  const bool is_job = RunsToCompletion(GetParam().kind);
  ExpectRequested(145, WallTime{});
  ExpectRequested(155, is_job ? WallTime{} : At(150));
  End(190);
  ExpectRequested(200, is_job ? At(190) : At(150));
  builder.Now(230);
  Answer(Pushed());
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  for (const char* node : {"n1", "n2"}) {
    ASSERT_NE(fakes::EntriesOf(plan, node), nullptr) << "the next run may use this node";
    EXPECT_EQ(fakes::EntriesOf(plan, node)->spec.warmups.at(0).bundles.size(), 1U);
  }
}

TEST_P(RunToCompletionCapture, PodThatExitedBeforeTheRequestIsCaptured) {
  builder.cache("n1").spec.captures.clear();
  End(92);
  ExpectRequested(101, At(92));
}

TEST_P(RunToCompletionCapture, StartIsCountedAtItsExit) {
  builder.Now(145 + 90);
  EXPECT_TRUE(builder.Decide().starts_counted.empty());
  End(147);
  builder.Now(147 + 90);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].pod, "a");
}

// A bare pod may serve, and so may workers of a RayCluster, which are not restarted either.
TEST_F(Handshake, UnrestartedServerIsReadyByProbeOrGroup) {
  for (const auto& [kind, probe] :
       {std::pair(WorkloadKind::kSelector, true), {WorkloadKind::kGroup, false}}) {
    builder.in().workload.kind = kind;
    builder.pod_template()["spec"]["containers"][0]["readinessProbe"] = codec::Json::object();
    builder.Pod({.name = "a",
                 .node = "n1",
                 .created = 80,
                 .started = 90,
                 .ready = 110,
                 .restart_policy = "Never",
                 .probe = probe});
    builder.Now(111);
    Apply(builder.Decide());
    EXPECT_EQ(builder.cache("n1").spec.captures.at(0).ready_time, At(110));
  }
}

TEST_F(Handshake, LongMessagesAreTruncatedToSchemaLimit) {
  Ready(110);
  Answer({.id = Id(1),
          .state = CaptureState::kFailed,
          .reason = "NothingToCapture",
          .message = std::string(1023, 'x') + "ä"});
  const std::string message = builder.Decide().status.builders[0].message;
  EXPECT_EQ(message, std::string(1023, 'x')) << "not inside a UTF-8 character";
}

TEST_F(Handshake, PausedWarmupKeepsCaptures) {
  Ready(110);
  Answer(Pushed());
  builder.warmup().spec.paused = true;
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status.bundles.empty());
  EXPECT_EQ(plan.status.builders, builder.status().builders);
  EXPECT_TRUE(plan.nodes.empty()) << "the request stays";
}

}  // namespace
}  // namespace cachewarm::plan
