// SPDX-License-Identifier: Apache-2.0
// Tests the values of the operator's metrics after known events. EveryMetricHasATestOfItsValue
// lists the test of each metric, also those in other files.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

#include "lib/api/names.h"
#include "lib/http/client.h"
#include "operator/daemon.h"
#include "operator/webhook/handler.h"
#include "tests/fakes/crds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube_front.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/setting_tests.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::op {
namespace {

using codec::Json;
using std::chrono::seconds;
using testing::Eventually;
using testing::SeriesValue;

class OperatorMetricValues : public ::testing::Test {
 protected:
  double Value(const std::string& series) const {
    return SeriesValue(registry_->Serialize(), series);
  }
  double Reconciles(const std::string& result) const {
    return Value("cachewarm_reconciles_total{controller=\"nodes\",result=\"" + result + "\"}");
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_{clock_};
  std::unique_ptr<metrics::Registry> registry_ = metrics::MakeRegistry();
  const Metrics metrics_ = MakeMetrics(*registry_, "test");
};

// The operator, leading without a Lease.
class LeadingOperator : public OperatorMetricValues {
 protected:
  LeadingOperator() { fakes::PutCrds(server_); }
  ~LeadingOperator() override { Stop(); }

  void Start() {
    Config config;
    config.listen_address = "127.0.0.1";
    config.listen_port = 0;
    config.leader_elect = false;
    daemon_ = std::make_unique<Daemon>(config, DaemonDependencies{.client = server_,
                                                                  .clock = clock_,
                                                                  .random = [] { return 0.5; },
                                                                  .log = log_,
                                                                  .registry = *registry_,
                                                                  .metrics = metrics_});
    running_ = std::async(std::launch::async, [this] { return daemon_->Run(stop_.get_token()); });
  }
  void Stop() {
    stop_.request_stop();
    if (running_.valid()) {
      EXPECT_TRUE(running_.get().ok());
    }
  }

  fakes::MemoryLog log_;
  std::unique_ptr<Daemon> daemon_;
  std::stop_source stop_;
  std::future<absl::Status> running_;
};

TEST_F(LeadingOperator, LeaderIsOneUntilTheEnd) {
  Start();
  EXPECT_TRUE(Eventually([this] { return Value("cachewarm_leader") == 1; }));
  Stop();
  EXPECT_EQ(Value("cachewarm_leader"), 0);
}

TEST_F(LeadingOperator, EachLeaderServesTheTotalsOfTheStatus) {
  Json warmup = testing::WarmupObject("llama");
  warmup["status"]["starts"]["gpuTypes"] =
      Json::array({{{"gpuType", "cpu"}, {"counts", {{"hit", 7}}}, {"savedSeconds", 12.5}}});
  server_.Put(kube::kCacheWarmups, warmup);
  server_.Put(kube::kNamespaces, testing::NamespaceObject("default"));
  const std::string cpu = "{namespace=\"default\",warmup=\"llama\",gpu_type=\"cpu\"";
  const auto hits = [&] { return Value("cachewarm_pod_starts_total" + cpu + ",result=\"hit\"}"); };
  const auto saved = [&] { return Value("cachewarm_saved_seconds_total" + cpu + "}"); };
  for (int leader = 0; leader < 2; ++leader) {
    Start();
    EXPECT_TRUE(Eventually([&] { return hits() == 7 && saved() == 12.5; })) << log_.Text();
    EXPECT_EQ(Value("cachewarm_pod_starts_total" + cpu + ",result=\"miss\"}"), 0);
    Stop();
    EXPECT_EQ(hits(), -1) << "a replica that does not lead serves no totals";
    stop_ = {};
  }
}

TEST_F(LeadingOperator, ReconcilesAreCountedAndTimed) {
  std::atomic<int> failures = 0;
  server_.Put(kube::kNodes, testing::NodeObject("n1", "uid-n1"));
  server_.Intercept([&](const kube::Request& request) {
    if (request.resource == "nodecaches" && request.verb != "list" && request.verb != "watch" &&
        failures < 3) {
      ++failures;
      clock_.Advance(seconds(5));
      return absl::UnavailableError("down");
    }
    return absl::OkStatus();
  });
  Start();
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Eventually([&] { return Reconciles("retry") == i; })) << i << log_.Text();
    clock_.Advance(seconds(1));
  }
  ASSERT_TRUE(Eventually([&] { return Reconciles("success") >= 1; })) << log_.Text();
  Stop();
  EXPECT_EQ(Reconciles("retry"), 3);
  EXPECT_EQ(Value("cachewarm_reconcile_seconds_sum{controller=\"nodes\"}"), 15);
  EXPECT_EQ(Value("cachewarm_reconcile_seconds_count{controller=\"nodes\"}"),
            3 + Reconciles("success"));
}

TEST_F(OperatorMetricValues, OfRequestsToTheApiServer) {
  http::PrepareProcess();
  server_.Put(kube::kNodes, testing::NodeObject("n1", "uid-n1"));
  server_.Intercept([&](const kube::Request& request) {
    clock_.Advance(request.path.ends_with("/n1") ? seconds(3) : seconds(4));
    return absl::OkStatus();
  });
  auto front = std::make_unique<fakes::KubeFront>(server_);
  const TempDir folder;
  folder.Write("kubeconfig", front->Kubeconfig());
  Config config;
  config.kubeconfig = folder / "kubeconfig";
  std::unique_ptr<http::Client> http;
  const auto client = ConnectToCluster(
      config, clock_, [] { return 0.5; }, metrics_, http);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Do(kube::Get(kube::kNodes, {.name = "n1"}), {}).ok());
  EXPECT_TRUE(
      absl::IsNotFound((*client)->Do(kube::Get(kube::kNodes, {.name = "n2"}), {}).status()));
  front.reset();
  const auto requests = [&](const std::string& verb, const std::string& code) {
    return Value("cachewarm_api_requests_total{verb=\"" + verb + "\",resource=\"nodes\",code=\"" +
                 code + "\"}");
  };
  // A request without a response. The client waits for a retry, on a clock that stands still.
  std::stop_source stop;
  auto create = std::async(std::launch::async, [&] {
    return (*client)
        ->Do(kube::Create(kube::kNodes, testing::NodeObject("n3", "uid-n3"), {}), stop.get_token())
        .status();
  });
  EXPECT_TRUE(Eventually([&] { return requests("create", "0") == 1; }));
  stop.request_stop();
  EXPECT_FALSE(create.get().ok());
  EXPECT_EQ(requests("get", "200"), 1);
  EXPECT_EQ(requests("get", "404"), 1);
  EXPECT_EQ(requests("create", "0"), 1);
  EXPECT_EQ(Value("cachewarm_api_request_seconds_sum{verb=\"get\"}"), 7);
  EXPECT_EQ(Value("cachewarm_api_request_seconds_count{verb=\"get\"}"), 2);
  EXPECT_EQ(Value("cachewarm_api_request_seconds_sum{verb=\"create\"}"), 0);
}

std::string ReviewOf(const std::string& ns) {
  return Json({{"apiVersion", "admission.k8s.io/v1"},
               {"kind", "AdmissionReview"},
               {"request",
                {{"uid", "q-1"},
                 {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                 {"namespace", ns},
                 {"operation", "CREATE"},
                 {"object",
                  {{"metadata", {{"labels", {{"app", "llama"}}}}},
                   {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}}}}}})
      .dump();
}

TEST_F(OperatorMetricValues, OfWebhookRequests) {
  const auto warmups = [this](std::string_view ns) {
    clock_.Advance(seconds(2));
    auto warmup = std::make_shared<api::CacheWarmup>();
    warmup->ns = std::string(ns);
    warmup->name = "llama";
    warmup->uid = "u-1";
    warmup->labels[std::string(api::kInjectLabel)] = "true";
    warmup->status.injection = api::Injection{.labels = {{"app", "llama"}}, .container = "c"};
    return ns == "serving" ? std::vector<webhook::Warmup>{warmup} : std::vector<webhook::Warmup>{};
  };
  const http::Handler handler = webhook::MakeHandler(
      {.warmups = warmups, .root = "/root", .clock = clock_, .metrics = metrics_});
  const auto send = [&](const std::string& body) {
    return handler({.method = "POST", .path = std::string(webhook::kPath), .body = body}).status;
  };
  EXPECT_EQ(send(ReviewOf("serving")), 200);
  EXPECT_EQ(send(ReviewOf("serving")), 200);
  EXPECT_EQ(send(ReviewOf("elsewhere")), 200);
  EXPECT_EQ(send("{}"), 400);
  const auto requests = [&](const std::string& result) {
    return Value("cachewarm_webhook_requests_total{result=\"" + result + "\"}");
  };
  EXPECT_EQ(requests("injected"), 2);
  EXPECT_EQ(requests("passed"), 1);
  EXPECT_EQ(requests("refused"), 1);
  EXPECT_EQ(Value("cachewarm_webhook_seconds_count"), 4);
  EXPECT_EQ(Value("cachewarm_webhook_seconds_sum"), 6);
}

TEST(EveryMetricHasATestOfItsValue, OfTheOperator) {
  const std::string here = "tests/unit/operator/metric_values_test.cc";
  const std::string executor = "tests/unit/operator/apply/executor_test.cc";
  const std::string releases = "tests/unit/operator/apply/releases_test.cc";
  const std::string warmups = "tests/unit/operator/controllers/warmups_test.cc";
  const std::string service = "tests/unit/operator/webhook/service_test.cc";
  fakes::ExpectATestForEveryMetric(
      "operator/metrics.cc",
      {{"cachewarm_pod_starts_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_saved_seconds_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_lost_seconds_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_saved_gpu_seconds_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_lost_gpu_seconds_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_builder_gpu_seconds_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_late_compiles_total", {executor, "ServesTheTotalsOfTheStatus"}},
       {"cachewarm_compile_seconds", {executor, "ObservesStartsAndBuildsOnceTheStatusIsWritten"}},
       {"cachewarm_engine_phase_seconds",
        {executor, "ObservesStartsAndBuildsOnceTheStatusIsWritten"}},
       {"cachewarm_engine_kv_cache_tokens", {executor, "ServesKvCacheSizesOfRecentStarts"}},
       {"cachewarm_engine_log_reads_total",
        {"tests/unit/operator/apply/log_reads_test.cc", "FailuresAreCountedAndLoggedOnce"}},
       {"cachewarm_pods_held",
        {warmups, "PodsThatCannotBeReleasedAreCountedAsHeldAndThenAsOverdue"}},
       {"cachewarm_pods_held_past_deadline",
        {warmups, "PodsThatCannotBeReleasedAreCountedAsHeldAndThenAsOverdue"}},
       {"cachewarm_webhook_certificate_expiry_timestamp_seconds",
        {service, "LeaderIssuesCertificatesUpdatesCaBundleAndServes"}},
       {"cachewarm_pod_start_seconds", {executor, "ObservesStartsAndBuildsOnceTheStatusIsWritten"}},
       {"cachewarm_builds_total", {executor, "ObservesStartsAndBuildsOnceTheStatusIsWritten"}},
       {"cachewarm_harvests_total", {executor, "CountsEachHarvestThatEnds"}},
       {"cachewarm_build_seconds", {executor, "ObservesStartsAndBuildsOnceTheStatusIsWritten"}},
       {"cachewarm_gate_releases_total", {releases, "ReleasesManyPodsAndCountsEachOnce"}},
       {"cachewarm_hold_seconds", {releases, "ReleaseLogsReasonAndCountsHoldTime"}},
       {"cachewarm_nodes_waiting", {"tests/unit/operator/settings_test.cc", "LimitsFetchingNodes"}},
       {"cachewarm_suspended_bundles",
        {"tests/unit/operator/controllers/warmups_test.cc",
         "SuspendedBundleIsCountedUntilReplaced"}},
       {"cachewarm_startup_taints_removed_total",
        {"tests/unit/operator/controllers/nodes_test.cc", "WarmNodeLosesOnlyItsTaint"}},
       {"cachewarm_admission_dry_runs_total",
        {"tests/unit/operator/controllers/warmups_test.cc", "DryRunPrecedesInjection"}},
       {"cachewarm_reconciles_total", {here, "ReconcilesAreCountedAndTimed"}},
       {"cachewarm_reconcile_seconds", {here, "ReconcilesAreCountedAndTimed"}},
       {"cachewarm_api_requests_total", {here, "OfRequestsToTheApiServer"}},
       {"cachewarm_api_request_seconds", {here, "OfRequestsToTheApiServer"}},
       {"cachewarm_admission_mode_info", {service, "InstalledPolicyKeepsCaBundleUnchanged"}},
       {"cachewarm_webhook_requests_total", {here, "OfWebhookRequests"}},
       {"cachewarm_webhook_seconds", {here, "OfWebhookRequests"}},
       {"cachewarm_leader", {here, "LeaderIsOneUntilTheEnd"}},
       {"cachewarm_build_info", {"tests/unit/operator/metrics_test.cc", "ReportBuildVersion"}}});
}

}  // namespace
}  // namespace cachewarm::op
