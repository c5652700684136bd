// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "lib/api/reasons.h"
#include "tests/unit/operator/apply/executor_fixture.h"

namespace cachewarm::apply {
namespace {

using op::testing::HeldPodObject;
using op::testing::NodeCacheObject;
using op::testing::PodObject;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ExecutorTest, EmptyPlanSendsNothing) {
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

TEST_F(ExecutorTest, StalePlanDoesNothing) {
  server.Edit(kube::kCacheWarmups, {"default", "llama"},
              [](codec::Json& warmup) { warmup["metadata"]["labels"]["x"] = "y"; });
  plan.status_changed = true;
  plan.status.summary.types = "1/2";
  plan.status.starts.gpu_types = {{.gpu_type = "cpu", .counts = {.hit = 1}}};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")),
                           .reason = std::string(api::reason::kReleasedWarm)});
  EXPECT_TRUE(absl::IsAborted(Execute()));
  EXPECT_TRUE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_pod_starts_total{namespace=\"default\",warmup=\"llama\","
                   "gpu_type=\"cpu\",result=\"hit\"}"),
            -1);
}

TEST_F(ExecutorTest, ServesTheTotalsOfTheStatus) {
  plan.status.starts.gpu_types = {{.gpu_type = "cpu",
                                   .counts = {.cold = 1, .hit = 2},
                                   .saved_seconds = 12.5,
                                   .lost_seconds = 2,
                                   .saved_gpu_seconds = 25,
                                   .lost_gpu_seconds = 4,
                                   .builder_gpu_seconds = 80,
                                   .late_compiles = 21},
                                  {.gpu_type = "nvidia/l4/sm_89"}};
  const auto starts = [this](const std::string& type, const std::string& result) {
    return Metric("cachewarm_pod_starts_total{namespace=\"default\",warmup=\"llama\",gpu_type=\"" +
                  type + "\",result=\"" + result + "\"}");
  };
  const std::string cpu = "{namespace=\"default\",warmup=\"llama\",gpu_type=\"cpu\"}";
  // A new leader serves what it finds in the status; each further plan changes nothing.
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Execute().ok());
    EXPECT_EQ(starts("cpu", "hit"), 2);
    EXPECT_EQ(starts("cpu", "cold"), 1);
    EXPECT_EQ(Metric("cachewarm_saved_seconds_total" + cpu), 12.5);
    EXPECT_EQ(Metric("cachewarm_lost_seconds_total" + cpu), 2);
    EXPECT_EQ(Metric("cachewarm_saved_gpu_seconds_total" + cpu), 25);
    EXPECT_EQ(Metric("cachewarm_lost_gpu_seconds_total" + cpu), 4);
    EXPECT_EQ(Metric("cachewarm_builder_gpu_seconds_total" + cpu), 80);
    EXPECT_EQ(Metric("cachewarm_late_compiles_total" + cpu), 21);
    EXPECT_EQ(Metric("cachewarm_late_compiles_total{namespace=\"default\",warmup=\"llama\","
                     "gpu_type=\"nvidia/l4/sm_89\"}"),
              0);
    for (const api::StartResult result : api::kStartResults) {
      EXPECT_EQ(starts("nvidia/l4/sm_89", std::string(Name(result))), 0);
    }
  }
  plan.status.starts.gpu_types[0].counts.hit = 3;
  plan.status_changed = true;
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(starts("cpu", "hit"), 3);
}

TEST_F(ExecutorTest, ServesKvCacheSizesOfRecentStarts) {
  const auto tokens = [this](const std::string& result) {
    return Metric(
        "cachewarm_engine_kv_cache_tokens{namespace=\"default\",warmup=\"llama\","
        "gpu_type=\"cpu\",result=\"" +
        result + "\"}");
  };
  const auto start = [](api::StartResult result, int64_t size) {
    return api::StartSample{
        .gpu_type = "cpu",
        .result = result,
        .engine = api::EngineStart{.log = api::EngineLog::kFound, .kv_cache_tokens = size}};
  };
  plan.status.starts.gpu_types = {{.gpu_type = "cpu"}};
  plan.status.starts.recent = {start(api::StartResult::kCold, 100),
                               start(api::StartResult::kHit, 120)};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(tokens("cold"), 100);
  EXPECT_EQ(tokens("hit"), 120);
  EXPECT_EQ(tokens("partial"), -1);
  plan.status.starts.recent = {start(api::StartResult::kHit, 130)};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(tokens("hit"), 130);
  EXPECT_EQ(tokens("cold"), -1) << "no recent start has this result";
}

TEST_F(ExecutorTest, ObservesStartsAndBuildsOnceTheStatusIsWritten) {
  plan.status_changed = true;
  plan.starts_counted = {
      {.gpu_type = "cpu", .result = api::StartResult::kHit, .start_seconds = 5},
      {.gpu_type = "cpu", .result = api::StartResult::kHit, .start_seconds = 7},
      {.gpu_type = "cpu", .result = api::StartResult::kCold, .compiled_after_seconds = 30}};
  plan.engines_reported = {
      {.result = api::StartResult::kHit,
       .engine = api::EngineStart{.compile_seconds = 1.5, .init_seconds = 7}},
      {.result = api::StartResult::kHit, .engine = api::EngineStart{.compile_seconds = 2}}};
  plan.builds_finished = {{.gpu_type = "cpu", .reason = "Captured", .seconds = 40}};
  ASSERT_TRUE(Execute().ok());
  const auto phase = [this](const std::string& part, const std::string& name) {
    return Metric("cachewarm_engine_phase_seconds_" + part +
                  "{namespace=\"default\",warmup=\"llama\",phase=\"" + name + "\",result=\"hit\"}");
  };
  EXPECT_EQ(phase("sum", "compile"), 3.5);
  EXPECT_EQ(phase("count", "init"), 1);
  EXPECT_EQ(phase("count", "weights"), -1) << "no engine reported it";
  const std::string warmup = "{namespace=\"default\",warmup=\"llama\"";
  EXPECT_EQ(Metric("cachewarm_pod_start_seconds_sum" + warmup + ",result=\"hit\"}"), 12);
  EXPECT_EQ(Metric("cachewarm_pod_start_seconds_count" + warmup + ",result=\"hit\"}"), 2);
  EXPECT_EQ(Metric("cachewarm_pod_start_seconds_count" + warmup + ",result=\"cold\"}"), -1)
      << "a start that was not measured is in no histogram";
  EXPECT_EQ(Metric("cachewarm_compile_seconds_sum" + warmup + "}"), 30);
  EXPECT_EQ(Metric("cachewarm_compile_seconds_count" + warmup + "}"), 1) << "hits do not compile";
  EXPECT_EQ(Metric("cachewarm_builds_total" + warmup + ",gpu_type=\"cpu\",reason=\"Captured\"}"),
            1);
  EXPECT_EQ(Metric("cachewarm_build_seconds_sum" + warmup + ",gpu_type=\"cpu\"}"), 40);
}

TEST_F(ExecutorTest, CountsEachHarvestThatEnds) {
  const auto harvests = [this](const std::string& result) {
    return Metric("cachewarm_harvests_total{namespace=\"default\",warmup=\"llama\",result=\"" +
                  result + "\"}");
  };
  const WallTime begin{std::chrono::seconds(1000)};
  const WallTime end{std::chrono::seconds(1100)};
  const auto ended = [&](const std::string& key, const std::string& reason) {
    return api::HarvestStatus{
        .key = key, .number = 1, .started_time = begin, .finished_time = end, .reason = reason};
  };
  warmup.status.harvests = {
      {.key = "a", .number = 1, .started_time = begin, .reason = "Harvesting"},
      ended("b", "Harvested")};
  plan.status.harvests = {
      ended("a", "Harvested"),     ended("b", "Harvested"),
      ended("c", "NothingNew"),    ended("d", "HarvestRefused"),
      ended("e", "HarvestFailed"), {.key = "f", .refusal = "spec.paused is set"}};
  plan.status_changed = true;
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(harvests("harvested"), 1) << "b had ended before";
  EXPECT_EQ(harvests("nothing_new"), 1);
  EXPECT_EQ(harvests("refused"), 1);
  EXPECT_EQ(harvests("failed"), 1);
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
  api::CacheWarmup other = warmup;
  other.uid = "uid-other";
  model::Plan other_plan;
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

TEST_F(ExecutorTest, FailedNodeBlocksOnlyLaterSteps) {
  for (const char* node : {"n1", "n2", "n3"}) {
    server.Put(kube::kNodeCaches, NodeCacheObject(node, "u"));
    plan.nodes.push_back({.node = node, .spec = {.warmups = {{.uid = "uid-llama"}}}});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  server.Intercept([](const kube::Request& request) {
    return request.path.ends_with("/n1") ? absl::UnavailableError("down") : absl::OkStatus();
  });
  const absl::Status status = Execute();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("NodeCache n1"));
  EXPECT_TRUE(server.Find(kube::kNodeCaches, {.name = "n3"})->contains("spec"));
  EXPECT_TRUE(IsHeld("a")) << "released before the NodeCaches were written";
}

// Calls a function for each event before it is recorded.
class WatchedEvents : public kube::EventSink {
 public:
  explicit WatchedEvents(std::function<void(const std::string& reason)> watch)
      : watch_(std::move(watch)) {}
  void Record(kube::Event event) override { watch_(event.reason); }

 private:
  std::function<void(const std::string& reason)> watch_;
};

// The order is the one that operator/model/plan.h states.
TEST_F(ExecutorTest, RunsStepsInTheOrderOfThePlan) {
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "u"));
  server.Put(kube::kPods, PodObject("b"));
  server.Put(kube::kJobs, *JobNamed("old").object);
  plan.status_changed = true;
  plan.builds_finished = {{.gpu_type = "cpu", .reason = "Captured", .seconds = 40}};
  plan.events = {{.regarding = {.ns = "default", .name = "llama"}, .reason = "Published"}};
  plan.set_inject_label = true;
  plan.nodes = {{.node = "n1", .spec = {.warmups = {{.uid = "uid-llama"}}}}};
  plan.annotations = {{.ns = "default", .pod = "b", .uid = "uid-b", .key = "k", .value = "v"}};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")),
                           .reason = "ReleasedWarm",
                           .event = {.reason = "ReleasedWarm"}});
  plan.jobs_to_create = {JobNamed("j")};
  plan.jobs_to_delete = {"old"};

  std::vector<std::string> effects;
  const auto take = [&](const std::string& effect) {
    const bool counted = Metric(
                             "cachewarm_build_seconds_sum{namespace=\"default\",warmup=\"llama\","
                             "gpu_type=\"cpu\"}") == 40;
    if (counted && std::find(effects.begin(), effects.end(), "metrics") == effects.end()) {
      effects.emplace_back("metrics");
    }
    effects.push_back(effect);
  };
  server.Intercept([&](const kube::Request& request) {
    take(request.verb + " " + request.path.substr(request.path.rfind('/') + 1));
    return absl::OkStatus();
  });
  WatchedEvents watched([&](const std::string& reason) { take("event " + reason); });
  const Executor all({.client = server,
                      .clock = clock,
                      .events = watched,
                      .metrics = metrics,
                      .log = log,
                      .job_refusals = refusals,
                      .release_refusals = release_refusals});
  ASSERT_TRUE(all.Execute(warmup, plan, {}).ok());
  EXPECT_THAT(effects, ::testing::ElementsAre("apply status", "metrics", "event Published",
                                              "patch llama", "apply n1", "patch b", "patch a",
                                              "event ReleasedWarm", "create jobs", "delete old"));
}

TEST_F(ExecutorTest, RejectedJobIsRecordedAndHoldsNoPod) {
  plan.jobs_to_create = {JobNamed("j")};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  for (const absl::Status& refusal :
       {absl::InvalidArgumentError("tty: no boolean"), absl::PermissionDeniedError("quota")}) {
    server.OnWrite([refusal](const kube::Request& request, codec::Json&) {
      return request.path.find("/jobs") != std::string::npos ? refusal : absl::OkStatus();
    });
    ASSERT_TRUE(Execute().ok());
    ASSERT_EQ(refusals.Of(warmup.uid).size(), 1U);
    EXPECT_EQ(refusals.Of(warmup.uid)[0].message, refusal.message());
  }
  EXPECT_FALSE(IsHeld("a"));
  server.OnWrite([](const kube::Request&, codec::Json&) { return absl::OkStatus(); });
  ASSERT_TRUE(Execute().ok());
  EXPECT_TRUE(refusals.Of(warmup.uid).empty()) << "the Job was created";
}

TEST_F(ExecutorTest, ExistingAndDeletedJobsAreSuccess) {
  server.Put(kube::kJobs, *JobNamed("j").object);
  plan.jobs_to_create = {JobNamed("j")};
  plan.jobs_to_delete = {"k"};
  EXPECT_TRUE(Execute().ok());
  plan.jobs_to_create.clear();
  plan.jobs_to_delete = {"j"};
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, PlansOfANamespaceShareOneConcurrencyLimit) {
  for (int i = 0; i < 60; ++i) {
    plan.releases.push_back(
        {.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")), .reason = "ReleasedWarm"});
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
    const std::jthread other([&] { EXPECT_TRUE(executor.Execute(warmup, plan, {}).ok()); });
    EXPECT_TRUE(Execute().ok());
  }
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 16);
}

TEST_F(ExecutorTest, HangingAnnotationBlocksNoOtherNamespace) {
  for (int i = 0; i < 60; ++i) {
    const auto pod = Hanging("p" + std::to_string(i));
    plan.annotations.push_back({.ns = "team",
                                .pod = pod->meta.name,
                                .uid = pod->meta.uid,
                                .key = "cachewarm.io/start",
                                .value = "v"});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  EXPECT_TRUE(absl::IsDeadlineExceeded(ExecuteThough(16)));
  EXPECT_LT(hanging.tries(), 30);
  EXPECT_FALSE(IsHeld("a"));
}

// The API server's answer to a forbidden affinity change or a violated policy.
TEST_F(ExecutorTest, AnnotatesOnlyThePodWithTheUid) {
  server.Put(kube::kPods, PodObject("a"));
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "uid-a", .key = "k", .value = "v"}};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ((*server.Find(kube::kPods, {"default", "a"}))["metadata"]["annotations"]["k"], "v");
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "older", .key = "k", .value = "w"},
                      {.ns = "default", .pod = "gone", .uid = "u", .key = "k", .value = "w"}};
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ((*server.Find(kube::kPods, {"default", "a"}))["metadata"]["annotations"]["k"], "v");
}

TEST_F(ExecutorTest, ReleasedPodGetsNoHoldAnnotation) {
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

TEST_F(ExecutorTest, RejectedAnnotationBlocksNoOtherPod) {
  plan.annotations = {HeldUntil("full")};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    return kube::AnnotationsOf(pod).contains("cachewarm.io/held-until")
               ? absl::InvalidArgumentError("annotations are too long")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok()) << "the next plan must not wait for a retry";
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_EQ(rejected, 1U);
  EXPECT_EQ(log.Count("annotations are too long"), 1);
}

TEST_F(ExecutorTest, PermanentlyRejectedAnnotationBlocksNothingElse) {
  for (const char* name : {"full", "frozen"}) {
    server.Put(kube::kPods, PodObject(name));
    plan.annotations.push_back({.ns = "default",
                                .pod = name,
                                .uid = std::string("uid-") + name,
                                .key = "cachewarm.io/start",
                                .value = "v"});
  }
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  plan.jobs_to_create = {JobNamed("j")};
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    return kube::AnnotationsOf(pod).contains("cachewarm.io/start")
               ? absl::InvalidArgumentError("annotations are too long")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(rejected, 2U);
  EXPECT_EQ(log.Count("annotations are too long"), 1) << "one line for all pods";
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_NE(server.Find(kube::kJobs, {"default", "j"}), nullptr);
}

TEST_F(ExecutorTest, TemporaryAnnotationErrorIsReturned) {
  server.Put(kube::kPods, PodObject("a"));
  plan.annotations = {{.ns = "default", .pod = "a", .uid = "uid-a", .key = "k", .value = "v"}};
  server.OnWrite([](const kube::Request&, codec::Json&) { return absl::UnavailableError("down"); });
  EXPECT_TRUE(absl::IsUnavailable(Execute()));
}

TEST_F(ExecutorTest, RejectedNodeCacheHoldsNoPod) {
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "u"));
  plan.nodes = {{.node = "n1"}};
  plan.releases.push_back({.pod = Stored(HeldPodObject("a", "llama")), .reason = "ReleasedWarm"});
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.path.find("nodecaches") != std::string::npos
               ? absl::InvalidArgumentError("spec.warmups: too many: 65")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(rejected, 1U);
  EXPECT_TRUE(log.Has("NodeCache n1: spec.warmups: too many: 65"));
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(ExecutorTest, RecordsEventsOfThePlan) {
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

TEST_F(ExecutorTest, DeletedWarmupIsNotWritten) {
  warmup = {.ns = "default", .name = "llama", .uid = "uid-llama", .deleting = true};
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
        {.pod = Stored(HeldPodObject("p" + std::to_string(i), "llama")), .reason = "ReleasedWarm"});
  }
  stopping.request_stop();
  EXPECT_TRUE(absl::IsCancelled(executor.Execute(warmup, plan, stopping.get_token()).status()));
}

TEST_F(ExecutorTest, ForbiddenDeletionOfAJobIsLoggedAndNoError) {
  server.Intercept([](const kube::Request& request) {
    return request.verb == "delete" ? absl::PermissionDeniedError("cannot delete resource jobs")
                                    : absl::OkStatus();
  });
  plan.jobs_to_delete = {"j"};
  EXPECT_TRUE(Execute().ok());
  EXPECT_TRUE(log.Has("cannot delete resource jobs"));
}

}  // namespace
}  // namespace cachewarm::apply
