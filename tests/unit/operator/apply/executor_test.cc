// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "lib/api/reasons.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"
#include "tests/unit/operator/world_fixture.h"

namespace cachewarm::apply {
namespace {

using op::testing::HeldPodObject;
using op::testing::NodeCacheObject;
using op::testing::PodObject;
using op::testing::WarmupObject;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ExecutorTest : public op::testing::WorldFixture {
 protected:
  ExecutorTest()
      : hanging(server, "team"),
        executor({.client = hanging,
                  .clock = clock,
                  .events = events,
                  .metrics = metrics,
                  .log = log,
                  .job_refusals = refusals}) {
    const kube::Object stored = server.Put(kube::kCacheWarmups, WarmupObject("llama"));
    snapshot.warmup = api::DecodeCacheWarmup(*stored).value();
  }

  std::shared_ptr<const api::Pod> Stored(const codec::Json& pod) {
    return std::make_shared<const api::Pod>(api::DecodePod(server.Put(kube::kPods, pod)).value());
  }

  absl::Status Execute() {
    const absl::StatusOr<Carried> carried = executor.Execute(snapshot, plan, {});
    refused = carried.ok() ? carried->refused : 0;
    return carried.status();
  }

  bool IsHeld(const std::string& name) {
    const kube::Object pod = server.Find(kube::kPods, {"default", name});
    const codec::Json* gates = kube::At(*pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
  }

  static plan::JobWish JobNamed(const std::string& name) {
    return {.name = name,
            .object = std::make_shared<const codec::Json>(
                codec::Json{{"apiVersion", "batch/v1"},
                            {"kind", "Job"},
                            {"metadata", {{"name", name}, {"namespace", "default"}}}})};
  }

  // A pod of the namespace whose pods hang.
  std::shared_ptr<const api::Pod> Hanging(const std::string& name) {
    codec::Json pod = HeldPodObject(name, "llama");
    pod["metadata"]["namespace"] = "team";
    return Stored(pod);
  }

  // What comes of it when `many` patches hang at once.
  absl::Status ExecuteThough(int many) {
    return CutShort(hanging, clock, many,
                    std::async(std::launch::async, [this] { return Execute(); }));
  }

  // Position of the first request that starts with `prefix`; -1 when there is none.
  int Position(const std::string& prefix) {
    const std::vector<std::string> requests = server.Requests();
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].starts_with(prefix)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  // The wish to note on a held pod, which is stored by this, how long it waits.
  plan::PodAnnotation HeldUntil(const std::string& name) {
    const auto pod = Stored(HeldPodObject(name, "llama"));
    return {.ns = "default",
            .pod = name,
            .uid = pod->meta.uid,
            .key = "cachewarm.io/held-until",
            .value = "v",
            .held = pod};
  }
  std::map<std::string, std::string> Annotations(const std::string& pod) {
    return kube::AnnotationsOf(*server.Find(kube::kPods, {"default", pod}));
  }
  codec::Json Warmup() { return *server.Find(kube::kCacheWarmups, {"default", "llama"}); }

  op::testing::HangingClient hanging;
  JobRefusals refusals;
  Executor executor;
  size_t refused = 0;  // of the last Execute() that was OK
  plan::Snapshot snapshot;
  plan::Plan plan;
};

TEST_F(ExecutorTest, AnEmptyPlanSendsNothing) {
  ASSERT_TRUE(Execute().ok());
  EXPECT_TRUE(server.Requests().empty());
}

TEST_F(ExecutorTest, WritesTheStatusThroughItsSubresource) {
  plan.status_changed = true;
  plan.status.summary.types = "1/2";
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(Warmup()["status"]["summary"]["types"], "1/2");
  EXPECT_THAT(server.Requests(), Contains(HasSubstr("cachewarmups/status")));
}

TEST_F(ExecutorTest, AStalePlanIsDroppedWhole) {
  server.Edit(kube::kCacheWarmups, {"default", "llama"},
              [](codec::Json& warmup) { warmup["metadata"]["labels"]["x"] = "y"; });
  plan.status_changed = true;
  plan.status.summary.types = "1/2";
  plan.starts_counted.push_back({.gpu_type = "cpu", .result = api::StartResult::kHit});
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")),
                           .reason = std::string(api::reason::kReleasedWarm)});
  EXPECT_TRUE(absl::IsAborted(Execute()));
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_pod_starts_total{namespace=\"default\",warmup=\"llama\","
                   "gpu_type=\"cpu\",result=\"hit\"}"),
            -1);
}

TEST_F(ExecutorTest, CountsStartsOnceTheStatusIsWritten) {
  plan.status_changed = true;
  plan.starts_counted = {
      {.gpu_type = "cpu", .result = api::StartResult::kHit, .saved_seconds = 12.5},
      {.gpu_type = "cpu", .result = api::StartResult::kHit, .saved_seconds = -2},
      {.gpu_type = "cpu", .result = api::StartResult::kCold}};
  plan.builds_finished = {{.gpu_type = "cpu", .reason = "Captured", .seconds = 40}};
  ASSERT_TRUE(Execute().ok());
  const std::string labels = "{namespace=\"default\",warmup=\"llama\",gpu_type=\"cpu\"";
  EXPECT_EQ(Metric("cachewarm_pod_starts_total" + labels + ",result=\"hit\"}"), 2);
  EXPECT_EQ(Metric("cachewarm_pod_starts_total" + labels + ",result=\"cold\"}"), 1);
  EXPECT_EQ(Metric("cachewarm_saved_seconds_total" + labels + "}"), 12.5);
  EXPECT_EQ(Metric("cachewarm_lost_seconds_total" + labels + "}"), 2);
  EXPECT_EQ(Metric("cachewarm_builds_total" + labels + ",result=\"Captured\"}"), 1);
  EXPECT_EQ(Metric("cachewarm_build_seconds_sum" + labels + "}"), 40);
}

TEST_F(ExecutorTest, SwitchesTheLabelBothWays) {
  plan.set_inject_label = false;
  ASSERT_TRUE(Execute().ok());
  EXPECT_FALSE(Warmup()["metadata"]["labels"].contains("cachewarm.io/inject"));
  plan.set_inject_label = true;
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(Warmup()["metadata"]["labels"]["cachewarm.io/inject"], "true");
}

TEST_F(ExecutorTest, EachWarmupOwnsItsEntriesOfANodeCache) {
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  plan.nodes = {{.node = "n1", .spec = {.warmups = {{.uid = "uid-llama", .name = "llama"}}}}};
  ASSERT_TRUE(Execute().ok());
  plan::Snapshot other = snapshot;
  other.warmup.uid = "uid-other";
  plan::Plan other_plan;
  other_plan.nodes = {{.node = "n1", .spec = {.warmups = {{.uid = "uid-other", .name = "o"}}}}};
  ASSERT_TRUE(executor.Execute(other, other_plan, {}).ok());
  codec::Json spec = (*server.Find(kube::kNodeCaches, {.name = "n1"}))["spec"];
  EXPECT_EQ(spec["warmups"].size(), 2U);
  plan.nodes = {{.node = "n1"}};
  ASSERT_TRUE(Execute().ok());
  spec = (*server.Find(kube::kNodeCaches, {.name = "n1"}))["spec"];
  ASSERT_EQ(spec["warmups"].size(), 1U);
  EXPECT_EQ(spec["warmups"][0]["uid"], "uid-other");
}

TEST_F(ExecutorTest, OneNodeThatFailsKeepsTheOthersFromNothingButTheNextStep) {
  for (const char* node : {"n1", "n2", "n3"}) {
    server.Put(kube::kNodeCaches, NodeCacheObject(node, "u"));
    plan.nodes.push_back({.node = node, .spec = {.warmups = {{.uid = "uid-llama"}}}});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  server.Intercept([](const kube::Request& request) {
    return request.path.ends_with("/n1") ? absl::UnavailableError("down") : absl::OkStatus();
  });
  const absl::Status status = Execute();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("NodeCache n1"));
  EXPECT_TRUE(server.Find(kube::kNodeCaches, {.name = "n3"})->contains("spec"));
  EXPECT_TRUE(IsHeld("a")) << "released before the wanted set was written";
}

TEST_F(ExecutorTest, KeepsTheOrderStatusNodesReleasesJobs) {
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "u"));
  plan.status_changed = true;
  plan.nodes = {{.node = "n1", .spec = {.warmups = {{.uid = "uid-llama"}}}}};
  plan.jobs_to_create = {JobNamed("j")};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  ASSERT_TRUE(Execute().ok());
  const int status = Position("apply cachewarmups/status");
  const int node = Position("apply nodecaches");
  const int job = Position("create jobs");
  const int release = Position("patch pods");
  EXPECT_TRUE(0 <= status && status < node && node < release && release < job)
      << status << node << release << job;
}

TEST_F(ExecutorTest, AJobThatIsRefusedIsNotedAndKeepsNoPodWaiting) {
  plan.jobs_to_create = {JobNamed("j")};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  for (const absl::Status& refusal :
       {absl::InvalidArgumentError("tty: no boolean"), absl::PermissionDeniedError("quota")}) {
    server.OnWrite([refusal](const kube::Request& request, codec::Json&) {
      return request.path.find("/jobs") != std::string::npos ? refusal : absl::OkStatus();
    });
    ASSERT_TRUE(Execute().ok());
    ASSERT_EQ(refusals.Of(snapshot.warmup.uid).size(), 1U);
    EXPECT_EQ(refusals.Of(snapshot.warmup.uid)[0].message, refusal.message());
  }
  EXPECT_FALSE(IsHeld("a"));
  server.OnWrite([](const kube::Request&, codec::Json&) { return absl::OkStatus(); });
  ASSERT_TRUE(Execute().ok());
  EXPECT_TRUE(refusals.Of(snapshot.warmup.uid).empty()) << "it was made";
}

TEST_F(ExecutorTest, AJobThatExistsAndOneThatIsGoneAreSuccess) {
  server.Put(kube::kJobs, *JobNamed("j").object);
  plan.jobs_to_create = {JobNamed("j")};
  plan.jobs_to_delete = {"k"};
  EXPECT_TRUE(Execute().ok());
  plan.jobs_to_create.clear();
  plan.jobs_to_delete = {"j"};
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, ReleasesManyPodsAndCountsEachOnce) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back({.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")),
                             .reason = "Warm",
                             .held_seconds = 3});
  }
  ASSERT_TRUE(Execute().ok());
  ASSERT_TRUE(Execute().ok()) << "a gate that is gone is no error";
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(IsHeld("p" + std::to_string(i)));
  }
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"Warm\"}"),
            60);
  EXPECT_EQ(Metric("cachewarm_hold_seconds_count{namespace=\"default\",warmup=\"llama\"}"), 60);
}

TEST_F(ExecutorTest, AllPlansTogetherHaveNoMoreRequestsUnderWayThanOne) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")), .reason = "Warm"});
  }
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  server.Intercept([&](const kube::Request&) {
    const int now = ++under_way;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --under_way;
    return absl::OkStatus();
  });
  {
    const std::jthread other([&] { EXPECT_TRUE(executor.Execute(snapshot, plan, {}).ok()); });
    EXPECT_TRUE(Execute().ok());
  }
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 16);
}

TEST_F(ExecutorTest, PodsThatHangTakeASlotForAShortWhileAndThenAlmostNone) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back({.pod = Hanging("p" + std::to_string(i)), .reason = "Warm"});
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(ExecuteThough(16)));
  EXPECT_LT(hanging.tries(), 30) << "16 at first, then hardly any";
  EXPECT_FALSE(ExecuteThough(1).ok());
  EXPECT_LT(hanging.tries(), 40);
  hanging.Answer();
  EXPECT_TRUE(op::testing::Eventually([&] { return Execute().ok(); }));
  for (const plan::GateRelease& release : plan.releases) {
    EXPECT_FALSE(
        observe::WaitsAtOurGate(*server.Find(kube::kPods, {"team", release.pod->meta.name})));
  }
}

TEST_F(ExecutorTest, AnAnnotationThatHangsKeepsNoOtherNamespaceWaiting) {
  for (int i = 0; i < 60; ++i) {
    const auto pod = Hanging("p" + std::to_string(i));
    plan.annotations.push_back({.ns = "team",
                                .pod = pod->meta.name,
                                .uid = pod->meta.uid,
                                .key = "cachewarm.io/start",
                                .value = "v"});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  EXPECT_TRUE(absl::IsDeadlineExceeded(ExecuteThough(16)));
  EXPECT_LT(hanging.tries(), 30);
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(ExecutorTest, ABuilderIsThroughBeforeAnyOtherPodIsReleased) {
  plan.releases.push_back({.pod = Stored(HeldPodObject("builder", "llama")), .reason = "Builder"});
  for (int i = 0; i < 20; ++i) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")), .reason = "NoRoom"});
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

TEST_F(ExecutorTest, ABuilderThatCannotBeReleasedKeepsNoOtherPodWaiting) {
  plan.releases.push_back({.pod = Stored(HeldPodObject("builder", "llama")), .reason = "Builder"});
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "NoRoom"});
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.ends_with("/builder") ? absl::UnavailableError("no") : absl::OkStatus();
  });
  EXPECT_FALSE(Execute().ok());
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(ExecutorTest, OnlyOfAPodThatWasReleasedItIsTold) {
  for (const char* name : {"a", "b"}) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject(name, "llama")),
         .reason = "Warm",
         .event = plan::EventWish{
             .regarding = {.kind = "Pod", .name = name}, .reason = "Warm", .action = "Gate"}});
  }
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.ends_with("/b") ? absl::UnavailableError("no") : absl::OkStatus();
  });
  EXPECT_FALSE(Execute().ok());
  ASSERT_EQ(events.Count("Warm"), 1);
  EXPECT_EQ(kube::NameOf(*events.All()[0].regarding).name, "a");
}

TEST_F(ExecutorTest, AReleaseNotesWhyOnThePodAndAddsItsPreference) {
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")),
                           .reason = "Warm",
                           .held_seconds = 3,
                           .preferred = {"n1"},
                           .excluded = {"n9"}});
  ASSERT_TRUE(Execute().ok());
  const codec::Json pod = *server.Find(kube::kPods, {"default", "a"});
  EXPECT_EQ(pod["metadata"]["annotations"]["cachewarm.io/released"], "Warm");
  EXPECT_THAT(pod["spec"]["affinity"].dump(), HasSubstr("\"n1\""));
  EXPECT_THAT(pod["spec"]["affinity"].dump(), HasSubstr("NotIn"));
}

// As the API server answers to an affinity that may not change like that, or a policy of the
// user's.
class RefusedAffinity : public ExecutorTest, public testing::WithParamInterface<absl::StatusCode> {
 protected:
  RefusedAffinity() {
    server.OnWrite([](const kube::Request&, codec::Json& object) {
      return kube::At(object, {"spec", "affinity"}) == nullptr
                 ? absl::OkStatus()
                 : absl::Status(GetParam(), "affinity is immutable");
    });
  }
  plan::GateRelease Release(std::vector<std::string> excluded) {
    return {.pod = Stored(HeldPodObject("a", "llama")),
            .reason = "Warm",
            .preferred = {"n1"},
            .excluded = std::move(excluded)};
  }
};
INSTANTIATE_TEST_SUITE_P(All, RefusedAffinity,
                         testing::Values(absl::StatusCode::kInvalidArgument,
                                         absl::StatusCode::kPermissionDenied),
                         [](const auto& each) { return absl::StatusCodeToString(each.param); });

TEST_P(RefusedAffinity, APreferenceIsNoReasonToBeHeld) {
  plan.releases = {Release({})};
  EXPECT_TRUE(Execute().ok());
  EXPECT_FALSE(IsHeld("a"));
  const codec::Json pod = *server.Find(kube::kPods, {"default", "a"});
  EXPECT_FALSE(pod["spec"].contains("affinity"));
  EXPECT_EQ(pod["metadata"]["annotations"]["cachewarm.io/released"], "Warm");
}

TEST_P(RefusedAffinity, APodThatWouldBreakOnANodeIsHeldUntilPlannedAnewAndCostsNothingElse) {
  plan.releases = {Release({"n9"})};
  plan.jobs_to_create = {JobNamed("j")};
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(refused, 1U);
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_TRUE(log.Has("affinity is immutable"));
  EXPECT_NE(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, AReleaseThatIsRefusedWhateverItAsksForIsToldAndComesAgain) {
  server.OnWrite([](const kube::Request&, codec::Json&) {
    return absl::PermissionDeniedError("this namespace is frozen");
  });
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm", .preferred = {"n1"}});
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(refused, 1U);
  EXPECT_TRUE(log.Has("this namespace is frozen"));
  EXPECT_TRUE(IsHeld("a"));
}

TEST_F(ExecutorTest, APodThatWasReplacedUnderItsNameIsLeftAloneAndIsNoError) {
  plan.releases.push_back(
      {.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm", .preferred = {"n1"}});
  server.Edit(kube::kPods, {"default", "a"},
              [](codec::Json& pod) { pod["metadata"]["uid"] = "another"; });
  EXPECT_TRUE(Execute().ok());
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"Warm\"}"),
            -1);
}

TEST_F(ExecutorTest, AnnotatesThePodItMeansAndNoOther) {
  server.Put(kube::kPods, PodObject("a"));
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "uid-a", .key = "k", .value = "v"}};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ((*server.Find(kube::kPods, {"default", "a"}))["metadata"]["annotations"]["k"], "v");
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "older", .key = "k", .value = "w"},
                      {.ns = "default", .pod = "gone", .uid = "u", .key = "k", .value = "w"}};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ((*server.Find(kube::kPods, {"default", "a"}))["metadata"]["annotations"]["k"], "v");
}

TEST_F(ExecutorTest, APodThatWasLetGoMeanwhileIsNotToldHowLongItWaits) {
  plan.annotations = {HeldUntil("a")};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(Annotations("a")["cachewarm.io/held-until"], "v");
  server.Edit(kube::kPods, {"default", "a"}, [](codec::Json& changed) {
    changed["spec"].erase("schedulingGates");
    changed["spec"]["nodeName"] = "n1";
  });
  plan.annotations[0].value = "w";
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(Annotations("a")["cachewarm.io/held-until"], "v");
}

TEST_F(ExecutorTest, ANoteThatOnePodCannotTakeKeepsNoOtherWaiting) {
  plan.annotations = {HeldUntil("full")};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    return kube::AnnotationsOf(pod).contains("cachewarm.io/held-until")
               ? absl::InvalidArgumentError("annotations are too long")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok()) << "what the plan wants next must not wait for a retry";
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_EQ(refused, 1U);
  EXPECT_EQ(log.Count("annotations are too long"), 1);
}

TEST_F(ExecutorTest, AnAnnotationThatIsRefusedForGoodCostsNothingElse) {
  for (const char* name : {"full", "frozen"}) {
    server.Put(kube::kPods, PodObject(name));
    plan.annotations.push_back({.ns = "default",
                                .pod = name,
                                .uid = std::string("uid-") + name,
                                .key = "cachewarm.io/start",
                                .value = "v"});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  plan.jobs_to_create = {JobNamed("j")};
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    return kube::AnnotationsOf(pod).contains("cachewarm.io/start")
               ? absl::InvalidArgumentError("annotations are too long")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(refused, 2U);
  EXPECT_EQ(log.Count("annotations are too long"), 1) << "one line, however many there are";
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_NE(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, AnAnnotationThatMayComeToPassIsAnErrorToTryAgain) {
  server.Put(kube::kPods, PodObject("a"));
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "uid-a", .key = "k", .value = "v"}};
  server.OnWrite([](const kube::Request&, codec::Json&) { return absl::UnavailableError("down"); });
  EXPECT_TRUE(absl::IsUnavailable(Execute()));
}

TEST_F(ExecutorTest, ANodeThatRefusesWhatItIsToldKeepsNoPodWaiting) {
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "u"));
  plan.nodes = {{.node = "n1"}};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "Warm"});
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.find("nodecaches") != std::string::npos
               ? absl::InvalidArgumentError("spec.warmups: too many: 65")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(refused, 1U);
  EXPECT_TRUE(log.Has("NodeCache n1: spec.warmups: too many: 65"));
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(ExecutorTest, TellsTheEventsOfThePlan) {
  plan.events = {{.regarding = {.api_version = "v1", .kind = "Pod", .ns = "default", .name = "a"},
                  .warning = true,
                  .reason = "BuildFailed",
                  .action = "Build",
                  .note = "because"}};
  ASSERT_TRUE(Execute().ok());
  ASSERT_EQ(events.Count("BuildFailed"), 1);
  const kube::Event event = events.All()[0];
  EXPECT_TRUE(event.is_warning);
  EXPECT_EQ(kube::NameOf(*event.regarding).name, "a");
}

TEST_F(ExecutorTest, OfAWarmupThatIsGoneNothingIsWritten) {
  snapshot.warmup = {.ns = "default", .name = "llama", .uid = "uid-llama", .deleting = true};
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "u"));
  plan.status_changed = true;
  plan.set_inject_label = false;
  plan.nodes = {{.node = "n1"}};
  ASSERT_TRUE(Execute().ok());
  EXPECT_THAT(server.Requests(), Not(Contains(HasSubstr("cachewarmups"))));
  EXPECT_THAT(server.Requests(), Contains(HasSubstr("nodecaches")));
}

TEST_F(ExecutorTest, StopsBetweenRequests) {
  std::stop_source stopping;
  for (int i = 0; i < 20; ++i) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")), .reason = "Warm"});
  }
  stopping.request_stop();
  EXPECT_TRUE(absl::IsCancelled(executor.Execute(snapshot, plan, stopping.get_token()).status()));
}

}  // namespace
}  // namespace cachewarm::apply
