// SPDX-License-Identifier: Apache-2.0
// Tests every setting of the operator from the text of the file to its effect. Settings used only
// by main.cc are tested in tests/integration/operator/program_test.cc; EverySettingHasATest keeps
// the list complete.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "lib/fingerprint/key.h"
#include "operator/daemon.h"
#include "operator/webhook/registration.h"
#include "tests/fakes/crds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/free_port.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/setting_tests.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::op {
namespace {

using std::chrono::seconds;
using testing::DeploymentObject;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::NodeCacheObject;
using testing::NodeObject;
using ::testing::Not;
using testing::PodObject;
using testing::SeriesValue;
using ::testing::StartsWith;
using testing::WarmupObject;

const std::string kCpuClasses[] = {"x86-64-v4/amd-25-17/5c0d9f21", "x86-64-v3/intel-6-85/0123abcd"};

// The operator with a configuration file, over an in-process API server, with agents that prepare
// every directory.
class OperatorSettings : public ::testing::Test {
 protected:
  OperatorSettings()
      : server_(clock_),
        registry_(metrics::MakeRegistry()),
        metrics_(MakeMetrics(*registry_, "test")) {
    fakes::PutCrds(server_);
    server_.Put(kube::kNamespaces, testing::NamespaceObject("default"));
  }
  ~OperatorSettings() override { Stop(); }

  absl::StatusOr<Config> Configured(const std::string& file) {
    const std::string listen =
        file.find("listen:") == std::string::npos ? "listen: 127.0.0.1:0\n" : "";
    const std::string elect =
        file.find("leaderElect:") == std::string::npos ? "leaderElect: false\n" : "";
    const auto parsed = ParseConfig(
        {.arguments = flags_.empty() ? std::vector<std::string>{"--config=/c.yaml"} : flags_,
         .environment = [](const std::string&) { return std::nullopt; },
         .read_file = [&](const std::string&) { return listen + elect + file; },
         .host_name = "operator-a",
         .version = "test"});
    if (!parsed.ok()) {
      return parsed.status();
    }
    return parsed->config;
  }

  void Start(const std::string& file) {
    const absl::StatusOr<Config> config = Configured(file);
    ASSERT_TRUE(config.ok()) << config.status();
    stop_ = {};
    daemon_ = std::make_unique<Daemon>(*config, DaemonDependencies{.client = server_,
                                                                   .clock = clock_,
                                                                   .random = [] { return 0.5; },
                                                                   .log = log_,
                                                                   .registry = *registry_,
                                                                   .metrics = metrics_});
    running_ = std::async(std::launch::async, [this] { return daemon_->Run(stop_.get_token()); });
  }
  void Stop() {
    stop_.request_stop();
    while (running_.valid() &&
           running_.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
      clock_.Advance(seconds(1));
    }
    if (running_.valid()) {
      EXPECT_TRUE(running_.get().ok());
    }
  }

  // Waits for `condition` while the agents work; advances the clock by a second whenever nothing
  // happens.
  bool InTime(const std::function<bool()>& condition, int seconds_max = 120) {
    for (int i = 0; i < seconds_max; ++i) {
      Agents();
      if (Eventually(condition, seconds(0)) ||
          Eventually(condition, std::chrono::seconds(i < 5 ? 1 : 0))) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      clock_.Advance(seconds(1));
    }
    return false;
  }

  // A node with a Ready agent that reports the node's CPU class.
  void PutNode(const std::string& name, const std::string& cpu_class = kCpuClasses[0]) {
    nodes_[name] = cpu_class;
    server_.Put(kube::kNodes, NodeObject(name, "uid-" + name));
    codec::Json agent = PodObject("agent-" + name);
    agent["metadata"]["namespace"] = ns_;
    agent["metadata"]["labels"] = {{"app.kubernetes.io/component", "agent"},
                                   {"app.kubernetes.io/name", "cachewarm"}};
    agent["spec"]["nodeName"] = name;
    agent["status"] = {{"phase", "Running"},
                       {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    server_.Put(kube::kPods, agent);
    server_.Put(kube::kNodeCaches, NodeCacheObject(name, "uid-" + name));
  }

  // Reports every directory in the NodeCaches as prepared.
  void Agents() {
    for (const auto& [name, cpu_class] : nodes_) {
      const kube::Object object = server_.Find(kube::kNodeCaches, {.name = name});
      if (object == nullptr) {
        continue;
      }
      codec::Json prepared = codec::Json::array();
      const codec::Json* warmups = codec::At(*object, {"spec", "warmups"});
      for (size_t i = 0; warmups != nullptr && i < warmups->size(); ++i) {
        const codec::Json& warmup = (*warmups)[i];
        codec::Json reported = {{"uid", warmup["uid"]},
                                {"prepared", warmup.value("runAs", codec::Json::array())}};
        reported.update(also_reported_);
        prepared.push_back(std::move(reported));
      }
      const codec::Json status = {
          {"node",
           {{"gpuType", "cpu"},
            {"cpuClass", cpu_class},
            {"agentVersion", "test"},
            {"keepsBundles", true},
            {"root", {{"path", "/var/lib/cachewarm"}, {"writable", true}, {"executable", true}}}}},
          {"heartbeatTime", FormatTime(clock_.Now())},
          {"warmups", prepared}};
      const codec::Json* reported = codec::At(*object, {"status", "warmups"});
      if (reported == nullptr || *reported != prepared) {
        server_.Edit(kube::kNodeCaches, {.name = name},
                     [&](codec::Json& cache) { cache["status"] = status; });
      }
    }
  }

  // A Deployment without replicas and its warmup.
  void PutWarmup(const std::string& name = "llama") {
    codec::Json deployment = DeploymentObject(name);
    deployment["spec"]["replicas"] = 0;
    deployment["status"] = {{"replicas", 0}};
    server_.Put(kube::kDeployments, deployment);
    server_.Put(kube::kCacheWarmups, WarmupObject(name));
  }
  // Adds a bundle that fits every node of the first CPU class to the status of the warmup llama.
  void PutBundle() {
    const std::string key = *fingerprint::KeyOf({.gpu_type = "cpu",
                                                 .cpu_class = kCpuClasses[0],
                                                 .image = "registry/llama:1",
                                                 .devices = 0,
                                                 .container = "server"});
    server_.Edit(kube::kCacheWarmups, {"default", "llama"}, [&](codec::Json& warmup) {
      warmup["status"]["bundles"] = {{{"key", key},
                                      {"gpuType", "cpu"},
                                      {"cpuClass", kCpuClasses[0]},
                                      {"image", "registry/llama:1"},
                                      {"digest", "sha256:" + std::string(64, 'a')},
                                      {"bytes", 1000},
                                      {"files", 10},
                                      {"native", true},
                                      {"publishedTime", FormatTime(clock_.Now())}}};
    });
  }

  codec::Json Warmup(const std::string& name = "llama") const {
    return *server_.Find(kube::kCacheWarmups, {"default", name});
  }
  // Number of nodes whose NodeCache lists a bundle.
  int Fetching() const {
    int count = 0;
    for (const kube::Object& cache : server_.All(kube::kNodeCaches)) {
      const codec::Json* warmups = codec::At(*cache, {"spec", "warmups"});
      count += warmups != nullptr && warmups->dump().find("sha256:") != std::string::npos ? 1 : 0;
    }
    return count;
  }

  std::string ns_ = "cachewarm-system";
  std::vector<std::string> flags_;
  codec::Json also_reported_ = codec::Json::object();  // about each warmup
  fakes::FakeClock clock_;
  fakes::FakeApiServer server_;
  fakes::MemoryLog log_;
  std::unique_ptr<metrics::Registry> registry_;
  Metrics metrics_;
  std::map<std::string, std::string> nodes_;
  std::unique_ptr<Daemon> daemon_;
  std::stop_source stop_;
  std::future<absl::Status> running_;
};

class BuildersJobsMax : public OperatorSettings, public ::testing::WithParamInterface<int> {};

TEST_P(BuildersJobsMax, LimitsBuilderJobs) {
  PutNode("n1", kCpuClasses[0]);
  PutNode("n2", kCpuClasses[1]);
  PutWarmup();
  Start(fmt::format("builders: {{jobsMax: {}}}\n", GetParam()));
  const auto jobs = [&] { return static_cast<int>(server_.All(kube::kJobs).size()); };
  EXPECT_TRUE(InTime([&] {
    return jobs() == GetParam() &&
           (GetParam() > 0 || Warmup().dump().find("builders.jobsMax") != std::string::npos);
  })) << jobs()
      << " " << Warmup()["status"].dump();
  EXPECT_FALSE(InTime([&] { return jobs() > GetParam(); }, 10));
}

INSTANTIATE_TEST_SUITE_P(All, BuildersJobsMax, ::testing::Values(0, 1, 2));

class FetchNodesMax : public OperatorSettings, public ::testing::WithParamInterface<int> {};

TEST_P(FetchNodesMax, LimitsFetchingNodes) {
  for (const char* name : {"n1", "n2", "n3"}) {
    PutNode(name);
  }
  PutWarmup();
  PutBundle();
  Start(fmt::format("fetch: {{nodesMax: {}}}\nbuilders: {{jobsMax: 0}}\n", GetParam()));
  const int waiting = 3 - GetParam();
  const auto waits = [&] {
    return SeriesValue(registry_->Serialize(),
                       "cachewarm_nodes_waiting{namespace=\"default\",warmup=\"llama\"}");
  };
  EXPECT_TRUE(InTime([&] { return Fetching() == GetParam() && waits() == waiting; }))
      << Fetching() << " " << waits() << Warmup()["status"].dump();
}

INSTANTIATE_TEST_SUITE_P(All, FetchNodesMax, ::testing::Values(1, 2));

class HarvestIntervalMinutes : public OperatorSettings, public ::testing::WithParamInterface<int> {
 protected:
  // The last harvest of the bundle began 5 minutes ago, and a running pod has compiled since.
  void PutHarvestedBundle() {
    PutBundle();
    server_.Edit(kube::kCacheWarmups, {"default", "llama"}, [&](codec::Json& warmup) {
      warmup["spec"]["harvest"] = true;
      const codec::Json& bundle = warmup["status"]["bundles"][0];
      warmup["status"]["harvests"] = {
          {{"key", bundle["key"]},
           {"number", 1},
           {"digest", bundle["digest"]},
           {"startedTime", FormatTime(clock_.Now() - std::chrono::minutes(5))},
           {"finishedTime", FormatTime(clock_.Now() - std::chrono::minutes(4))}}};
      also_reported_ = {
          {"bundles", {{{"digest", bundle["digest"]}, {"state", "Active"}}}},
          {"harvestable",
           {{"generation", "tree"}, {"runAs", "image"}, {"units", 3}, {"set", "0123"}}}};
    });
  }
  void PutRunningPod() {
    codec::Json pod = PodObject("llama-0");
    pod["metadata"]["annotations"][std::string(api::kWarmupAnnotation)] = "llama";
    pod["spec"]["nodeName"] = "n1";
    pod["spec"]["volumes"] = {
        {{"name", std::string(api::kVolume)},
         {"hostPath", {{"path", "/var/lib/cachewarm/default/llama/uid-llama/image"}}}}};
    const std::string started = FormatTime(clock_.Now() - std::chrono::hours(1));
    pod["status"] = {
        {"phase", "Running"},
        {"conditions",
         {{{"type", "ContainersReady"}, {"status", "True"}, {"lastTransitionTime", started}},
          {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", started}}}},
        {"containerStatuses",
         {{{"name", "server"},
           {"ready", true},
           {"restartCount", 0},
           {"state", {{"running", {{"startedAt", started}}}}}}}}};
    server_.Put(kube::kPods, pod);
  }
};

TEST_P(HarvestIntervalMinutes, LimitsHarvestsOfABundle) {
  PutNode("n1");
  PutWarmup();
  PutHarvestedBundle();
  PutRunningPod();
  Start(fmt::format("harvest: {{intervalMinutes: {}}}\nbuilders: {{jobsMax: 0}}\n", GetParam()));
  const auto captures = [&] {
    const kube::Object cache = server_.Find(kube::kNodeCaches, {.name = "n1"});
    return codec::At(*cache, {"spec", "captures"}) != nullptr;
  };
  EXPECT_EQ(InTime(captures, 40), GetParam() < 5) << Warmup()["status"].dump();
}

INSTANTIATE_TEST_SUITE_P(All, HarvestIntervalMinutes, ::testing::Values(4, 60));

class FreshNodesTainted : public OperatorSettings, public ::testing::WithParamInterface<bool> {};

TEST_P(FreshNodesTainted, AllowsInjectionBeforeAnyNodeFits) {
  PutWarmup();
  Start(fmt::format("freshNodes: {{tainted: {}}}\n", GetParam()));
  ASSERT_TRUE(InTime([&] { return Warmup().contains("status"); }));
  const auto injects = [&] { return Warmup()["status"].contains("injection"); };
  EXPECT_EQ(InTime(injects, 20), GetParam()) << Warmup()["status"].dump();
}

INSTANTIATE_TEST_SUITE_P(All, FreshNodesTainted, ::testing::Bool());

class EngineLogs : public OperatorSettings, public ::testing::WithParamInterface<bool> {};

TEST_P(EngineLogs, AreReadAfterAStart) {
  PutNode("n1");
  PutWarmup();
  server_.Edit(kube::kCacheWarmups, {"default", "llama"}, [](codec::Json& warmup) {
    warmup["status"]["starts"]["recent"] = {{{"podUID", "uid-a"}, {"result", "hit"}}};
  });
  codec::Json pod = PodObject("a");
  pod["spec"]["nodeName"] = "n1";
  pod["status"] = {
      {"phase", "Running"},
      {"conditions",
       {{{"type", "Ready"}, {"status", "True"}},
        {{"type", "ContainersReady"}, {"status", "True"}}}},
      {"containerStatuses",
       {{{"name", "server"},
         {"ready", true},
         {"restartCount", 0},
         {"state", {{"running", {{"startedAt", FormatTime(clock_.Now() - seconds(120))}}}}}}}}};
  server_.Put(kube::kPods, pod);
  server_.SetLog({"default", "a"}, "server", "Loading weights took 2.56 seconds\n");
  Start(fmt::format("engineLogs: {{enabled: {}}}\nbuilders: {{jobsMax: 0}}\n", GetParam()));
  const auto weights = [&] {
    return Warmup()["status"]["starts"]["recent"][0].value("/engine/weightsSeconds"_json_pointer,
                                                           0.0);
  };
  EXPECT_EQ(InTime([&] { return weights() == 2.56; }, 20), GetParam()) << Warmup()["status"].dump();
  int reads = 0;
  for (const std::string& request : server_.Requests()) {
    reads += request.starts_with("get pods/log") ? 1 : 0;
  }
  EXPECT_EQ(reads, GetParam() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(All, EngineLogs, ::testing::Bool());

TEST_F(OperatorSettings, BuildersMountTheRoot) {
  PutNode("n1");
  PutWarmup();
  Start("root: /data/cachewarm\n");
  ASSERT_TRUE(InTime([&] { return !server_.All(kube::kJobs).empty(); }));
  EXPECT_THAT(server_.All(kube::kJobs).front()->dump(), HasSubstr("\"/data/cachewarm/"));
}

class OperatorWorkers : public OperatorSettings, public ::testing::WithParamInterface<int> {};

TEST_P(OperatorWorkers, LimitConcurrentReconciles) {
  for (int i = 0; i < 8; ++i) {
    server_.Put(kube::kCacheWarmups, WarmupObject("w" + std::to_string(i)));
  }
  std::mutex mutex;
  std::condition_variable released;
  bool is_released = false;
  int waiting = 0;
  server_.Intercept([&](const kube::Request& request) {
    if (request.resource == "cachewarmups/status") {
      std::unique_lock lock(mutex);
      ++waiting;
      released.wait(lock, [&] { return is_released; });
    }
    return absl::OkStatus();
  });
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return waiting;
  };
  Start(fmt::format("workers: {}\n", GetParam()));
  EXPECT_TRUE(InTime([&] { return count() >= GetParam(); }, 20));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(count(), GetParam());
  {
    const std::lock_guard lock(mutex);
    is_released = true;
    released.notify_all();
  }
  Stop();
}

INSTANTIATE_TEST_SUITE_P(All, OperatorWorkers, ::testing::Values(1, 5));

TEST_F(OperatorSettings, LeaderElectFalseTakesNoLease) {
  Start("leaderElect: false\n");
  const auto leads = [&] { return SeriesValue(registry_->Serialize(), "cachewarm_leader") == 1; };
  EXPECT_TRUE(InTime(leads, 20));
  EXPECT_TRUE(server_.All(kube::kLeases).empty());
}

TEST_F(OperatorSettings, LeaseHasNamespaceAndIdentity) {
  flags_ = {"--config=/c.yaml", "--namespace=team-a", "--identity=me"};
  Start("leaderElect: true\n");
  ASSERT_TRUE(InTime([&] { return !server_.All(kube::kLeases).empty(); }, 30));
  const kube::Object lease = server_.All(kube::kLeases).front();
  EXPECT_EQ(kube::NameOf(*lease).ns, "team-a");
  EXPECT_THAT(codec::TextAt(*lease, {"spec", "holderIdentity"}), StartsWith("me_"));
}

// True if a socket listens on this loopback port.
bool IsServed(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<uint16_t>(port)),
                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const bool connected =
      ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(socket);
  return connected;
}

TEST_F(OperatorSettings, ListenSetsTheMetricsPort) {
  const int port = fakes::FreePort();
  Start(fmt::format("listen: 127.0.0.1:{}\n", port));
  EXPECT_TRUE(Eventually([&] { return daemon_->port() == port; }));
  EXPECT_TRUE(IsServed(port));
}

TEST_F(OperatorSettings, WebhookListenSetsTheWebhookPort) {
  server_.Serve(kube::kMutatingPolicies, false);
  server_.Put(
      kube::kMutatingWebhooks,
      {{"metadata", {{"name", std::string(webhook::kAdmissionName)}}},
       {"webhooks", codec::Json::array({{{"clientConfig", {{"service", {{"name", "x"}}}}}}})}});
  server_.Put(kube::kSecrets, {{"metadata", {{"name", "cachewarm-webhook"}, {"namespace", ns_}}}});
  const int port = fakes::FreePort();
  Start(fmt::format("webhookListen: 127.0.0.1:{}\n", port));
  EXPECT_TRUE(InTime([&] { return IsServed(port); }, 30)) << log_.Text();
}

TEST(EverySettingHasATest, OfTheOperator) {
  const std::string here = "tests/unit/operator/settings_test.cc";
  const std::string program = "tests/integration/operator/program_test.cc";
  const auto help = ParseConfig({.arguments = {"--help"},
                                 .environment = [](const std::string&) { return std::nullopt; },
                                 .read_file = [](const std::string&) { return std::string(); },
                                 .host_name = "h",
                                 .version = "1"});
  ASSERT_TRUE(help.ok() && help->print.has_value());
  fakes::ExpectATestForEverySetting(
      *help->print, {
                        {"--config", {program, "LeadsAndServesAsItsFileSays"}},
                        {"--kubeconfig", {program, "LeadsAndServesAsItsFileSays"}},
                        {"--listen", {here, "ListenSetsTheMetricsPort"}},
                        {"--webhook-listen", {here, "WebhookListenSetsTheWebhookPort"}},
                        {"--root", {here, "BuildersMountTheRoot"}},
                        {"--leader-elect", {here, "LeaderElectFalseTakesNoLease"}},
                        {"--log-level", {program, "LogLevelDropsLinesBelowIt"}},
                        {"--namespace", {here, "LeaseHasNamespaceAndIdentity"}},
                        {"--identity", {here, "LeaseHasNamespaceAndIdentity"}},
                        {"--workers", {here, "LimitConcurrentReconciles"}},
                        {"--builder-jobs-max", {here, "LimitsBuilderJobs"}},
                        {"--fetch-nodes-max", {here, "LimitsFetchingNodes"}},
                        {"--harvest-interval-minutes", {here, "LimitsHarvestsOfABundle"}},
                        {"--fresh-nodes-tainted", {here, "AllowsInjectionBeforeAnyNodeFits"}},
                        {"--engine-logs", {here, "AreReadAfterAStart"}},
                    });
}

}  // namespace
}  // namespace cachewarm::op
