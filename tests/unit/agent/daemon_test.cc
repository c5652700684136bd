// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "lib/codec/json_value.h"
#include "lib/http/client.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/unit/agent/node_probes.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
namespace stdfs = std::filesystem;

constexpr char kRetired[] =
    "retired trees built for another GPU type or CPU class, or not completely on the disk when the "
    "machine restarted";

// The machine's clock, moved on by Shift().
class ShiftedClock final : public Clock {
 public:
  WallTime Now() const override { return SystemClock().Now() + Duration(shift_.load()); }
  MonoTime Monotonic() const override {
    return SystemClock().Monotonic() + Duration(shift_.load());
  }
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake,
                 MonoTime deadline, std::stop_token stop) const override {
    SystemClock().WaitUntil(lock, wake, deadline - Duration(shift_.load()), std::move(stop));
  }
  void Shift(Duration by) { shift_ += by.count(); }

 private:
  std::atomic<int64_t> shift_ = 0;
};

// Blocks the thread that writes a message, until Release() is called.
class BlockingLog final : public Log {
 public:
  BlockingLog(Log& inner, std::string message) : inner_(inner), message_(std::move(message)) {}

  void Write(LogLevel level, std::string_view msg, LogFields fields) override {
    inner_.Write(level, msg, fields);
    if (msg == message_) {
      is_blocked_ = true;
      is_released_.wait(false);
    }
  }
  bool is_blocked() const { return is_blocked_; }
  void Release() {
    is_released_ = true;
    is_released_.notify_all();
  }

 private:
  Log& inner_;
  const std::string message_;
  std::atomic<bool> is_blocked_ = false;
  std::atomic<bool> is_released_ = false;
};

// The whole agent with a real clock, a real directory and an API server in this process.
class DaemonTest : public ::testing::Test, protected Workbench {
 protected:
  DaemonTest() : server_(SystemClock()) {
    config_.node_name = "node-a";
    config_.root = (scratch_ / "root").string();
    config_.listen_address = "127.0.0.1";
    config_.listen_port = 0;
    config_.disk = {};  // the disk of the test machine may be nearly full
    http_ = *http::MakeClient({});
  }
  ~DaemonTest() override { Stop(); }

  void Start() {
    daemon_ = std::make_unique<Daemon>(
        config_, DaemonDependencies{
                     .client = server_,
                     .store = store_,
                     .clock = clock_,
                     .random = [] { return 0.5; },
                     .log = blocking_log_ == nullptr ? static_cast<Log&>(log_) : *blocking_log_,
                     .registry = *registry_,
                     .metrics = metrics_,
                     .probes = Probes(),
                     .version = "test",
                     .facts_options = {.retry = Duration(50), .look = Duration(5), .first = first_},
                     .boot_id = boot_id_});
    stop_ = {};
    running_ = std::async(std::launch::async, [this] { return daemon_->Run(stop_.get_token()); });
  }

  // A driver that fails `probe_failures_` times, hangs while `hangs_`, and then reports `found_`.
  NodeProbes Probes() {
    return {.all = [this](std::stop_token stop) -> absl::StatusOr<fingerprint::NodeFacts> {
              ++probes_;
              while (hangs_ && !stop.stop_requested()) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
              if (probe_failures_-- > 0) {
                return absl::UnavailableError("driver is starting");
              }
              std::lock_guard lock(found_mutex_);
              return found_;
            },
            .without_gpu = [this]() -> absl::StatusOr<fingerprint::NodeFacts> {
              std::lock_guard lock(found_mutex_);
              fingerprint::NodeFacts facts = found_;
              facts.gpu_type.clear();
              return facts;
            },
            .driver_state = [this] { return std::to_string(driver_version_.load()); }};
  }
  void Install(const std::string& gpu_type) {
    {
      std::lock_guard lock(found_mutex_);
      found_.gpu_type = gpu_type;
      found_.gpu_kinds = {gpu_type};
    }
    ++driver_version_;
  }

  // Stops the daemon. Returns the time it took.
  Duration Stop() {
    const auto begin = std::chrono::steady_clock::now();
    stop_.request_stop();
    if (running_.valid()) {
      EXPECT_TRUE(running_.get().ok());
    }
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  }

  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  void Put(const api::NodeCacheSpec& spec) {
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}},
                                    {"spec", api::EncodeSpec(spec)}});
  }
  api::NodeCacheStatus Status() const {
    const kube::Object object = server_.Find(kube::kNodeCaches, {"", "node-a"});
    return object == nullptr ? api::NodeCacheStatus{} : api::DecodeNodeCache(*object)->status;
  }
  http::Response Get(const std::string& path) {
    const auto answer =
        http_->Send({.url = "http://127.0.0.1:" + std::to_string(daemon_->port()) + path}, {});
    return answer.ok() ? *answer : http::Response{};
  }

  bool HasLogged(const std::string& message) const {
    const std::vector<std::string> messages = log_.messages();
    return std::find(messages.begin(), messages.end(), message) != messages.end();
  }

  static api::WantedWarmup Warmup() {
    return {.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}};
  }

  Scratch scratch_;
  Config config_;
  fakes::FakeApiServer server_;
  ShiftedClock clock_;
  std::unique_ptr<BlockingLog> blocking_log_;
  std::unique_ptr<http::Client> http_;
  std::atomic<int> probe_failures_ = 0;
  std::atomic<int> probes_ = 0;
  std::atomic<bool> hangs_ = false;
  std::atomic<int> driver_version_ = 0;
  std::string boot_id_ = "boot-1";
  Duration first_{500};
  std::mutex found_mutex_;
  fingerprint::NodeFacts found_ = node_;
  std::unique_ptr<Daemon> daemon_;
  std::stop_source stop_;
  std::future<absl::Status> running_;
};

TEST_F(DaemonTest, CarriesBundleFromBuilderToPods) {
  api::CaptureRequest request = Request();
  request.settle_seconds = 1;
  request.started_time = SystemClock().Now();
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return Status().warmups.size() == 1 && Status().warmups[0].prepared.size() == 1; }));
  // The builder compiles and becomes ready.
  scratch_.Write("root/" + MountPath(kMount) + "/" + kIndexFile, "compiled");
  request.ready_time = SystemClock().Now();
  Put({.warmups = {Warmup()}, .captures = {request}});
  ASSERT_TRUE(Eventually([&] {
    return Status().captures.size() == 1 &&
           Status().captures[0].state == api::CaptureState::kPushed;
  }));
  const Digest digest = Status().captures[0].digest;
  // The operator distributes it.
  api::WantedWarmup warm = Warmup();
  warm.bundles = {{.key = request.key, .digest = digest, .bytes = Status().captures[0].bytes}};
  Put({.warmups = {warm}});
  ASSERT_TRUE(Eventually([&] {
    return Status().warmups.size() == 1 && Status().warmups[0].bundles.size() == 1 &&
           Status().warmups[0].bundles[0].state == api::BundleState::kActive;
  }));
  EXPECT_EQ(MountedFiles(scratch_ / "root", kMount),
            (std::map<std::string, std::string>{{kIndexFile, "compiled"}}));
  EXPECT_TRUE(Status().captures.empty());
  EXPECT_NE(Get("/metrics").body.find("cachewarm_fetches_total{result=\"ok\"} 1"),
            std::string::npos);
}

TEST_F(DaemonTest, IsReadyOnceSpecIsKnown) {
  server_.Intercept([](const kube::Request&) { return absl::UnavailableError("down"); });
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->port() != 0; }));
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
  server_.Intercept(nullptr);
  Put({});
  EXPECT_TRUE(Eventually([&] { return Get("/readyz").status == 200; }));
}

TEST_F(DaemonTest, RepairsMountsWithoutApiServer) {
  stdfs::create_directories(scratch_ / ("root/" + MountParent(kMount)));
  stdfs::create_symlink(LinkTarget(std::string(32, 'e')), scratch_ / ("root/" + MountPath(kMount)));
  server_.Intercept([](const kube::Request&) { return absl::UnavailableError("down"); });
  Start();
  EXPECT_TRUE(
      Eventually([&] { return stdfs::is_directory(scratch_ / ("root/" + MountPath(kMount))); }));
}

TEST_F(DaemonTest, ReportsUnusableRootInStatus) {
  scratch_.Write("root", "a file stands where the directory should be");
  config_.byte_limit = 1'000'000;
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return !Status().node.root.message.empty(); }));
  EXPECT_FALSE(Status().node.root.writable);
  EXPECT_EQ(Status().node.root.limit_bytes, 1'000'000);
  EXPECT_EQ(Status().node.gpu_type, "cpu");
  stdfs::remove(scratch_ / "root");
  EXPECT_TRUE(Eventually([&] { return Status().node.root.writable; }));
}

TEST_F(DaemonTest, WaitsForPreviousAgent) {
  scratch_.Write("root/.staging/half/file", "the other agent fetches this");
  const auto root = OpenRoot(config_.root);
  auto other = LockRoot(*root, {.clock = SystemClock()});
  ASSERT_TRUE(other.ok()) << other.status();
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(
      Eventually([&] { return HasLogged("waiting for the previous agent to release the lock"); }));
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(scratch_.Read("root/.staging/half/file"), "the other agent fetches this");
  { const fs::Fd ended = *std::move(other); }
  EXPECT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  EXPECT_TRUE(stdfs::is_empty(scratch_ / "root/.staging"));
  EXPECT_FALSE(HasLogged("root directory unusable")) << "it waits for the lock";
}

TEST_F(DaemonTest, RemovesFoldersThatAnInterruptedEvictionLeft) {
  stdfs::create_directories(scratch_ / "root/team/removed/uid-2");
  Start();
  EXPECT_TRUE(Eventually([&] { return !stdfs::exists(scratch_ / "root/team"); }));
}

TEST_F(DaemonTest, IsUnhealthyWithoutRoot) {
  Put({});
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  EXPECT_EQ(Get("/healthz").status, 200);
  ASSERT_TRUE(Eventually([&] {
    std::error_code ignored;
    stdfs::remove_all(config_.root, ignored);
    return !stdfs::exists(config_.root);
  }));
  Put({.warmups = {Warmup()}});
  ASSERT_TRUE(Eventually([&] { return Get("/healthz").status == 503; }));
  EXPECT_NE(Get("/healthz").body.find("root directory"), std::string::npos);
}

TEST_F(DaemonTest, IsUnhealthyWhileAnIterationHangs) {
  blocking_log_ = std::make_unique<BlockingLog>(log_, "NodeCache condition changed");
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}}}, .warmups = {Warmup()}});
  ASSERT_TRUE(Eventually([&] { return blocking_log_->is_blocked(); }));
  EXPECT_EQ(Get("/healthz").status, 200);
  clock_.Shift(seconds(181));
  const http::Response stalled = Get("/healthz");
  blocking_log_->Release();
  EXPECT_EQ(stalled.status, 503);
  EXPECT_NE(stalled.body.find("sync loop has made no progress for"), std::string::npos)
      << stalled.body;
  EXPECT_TRUE(Eventually([&] { return Get("/healthz").status == 200; }));
}

TEST_F(DaemonTest, ReleasesRootLockOnStop) {
  Put({});
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  Stop();
  EXPECT_TRUE(
      LockRoot(*OpenRoot(config_.root), {.clock = SystemClock(), .timeout = Duration(0)}).ok());
}

TEST_F(DaemonTest, PreparesDirectoriesWhileTheDriverFails) {
  probe_failures_ = 1'000'000;
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}}}, .warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return Status().warmups.size() == 1 && Status().warmups[0].prepared.size() == 1; }));
  ASSERT_TRUE(Eventually([&] { return Status().conditions.size() == 2; }));
  EXPECT_EQ(Status().conditions[0].type, "GPUNotVisible");
  EXPECT_EQ(Status().conditions[1].type, "GPUProbeFailed");
  EXPECT_NE(Status().conditions[1].message.find("driver is starting"), std::string::npos);
  EXPECT_EQ(Status().node.gpu_type, "");
  ASSERT_TRUE(Eventually([&] { return probes_ > 3; }));
  EXPECT_EQ(log_.Count("cannot probe the node"), 1) << "the error is logged once";
  Install("nvidia/h200/sm_90");
  probe_failures_ = 0;
  ASSERT_TRUE(Eventually([&] { return Status().node.gpu_type == "nvidia/h200/sm_90"; }));
  EXPECT_TRUE(Eventually([&] { return Status().conditions[0].status == "False"; }));
  EXPECT_TRUE(Eventually([&] { return Status().conditions[1].status == "False"; }));
}

TEST_F(DaemonTest, PreparesDirectoriesWhileTheDriverHangs) {
  hangs_ = true;
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}}}, .warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return Status().warmups.size() == 1 && Status().warmups[0].prepared.size() == 1; }));
  ASSERT_TRUE(Eventually([&] { return Status().conditions.size() == 1; }));
  EXPECT_NE(Status().conditions[0].message.find("the driver has not answered yet"),
            std::string::npos)
      << Status().conditions[0].message;
  EXPECT_EQ(Status().node.gpu_type, "");
  EXPECT_EQ(Status().node.cpu_class, node_.cpu_class);
  EXPECT_EQ(probes_, 1);
  hangs_ = false;
  EXPECT_TRUE(Eventually([&] { return Status().node.gpu_type == "cpu"; }));
}

TEST_F(DaemonTest, ReplacedDriverRetiresTheTreesOfTheOtherGpuType) {
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return Status().warmups.size() == 1 && Status().warmups[0].prepared.size() == 1; }));
  const std::string path = "root/" + MountPath(kMount);
  scratch_.Write(path + "/" + kIndexFile, "compiled for cpu");
  Install("nvidia/h200/sm_90");
  ASSERT_TRUE(Eventually([&] { return Status().node.gpu_type == "nvidia/h200/sm_90"; }));
  EXPECT_FALSE(stdfs::exists(scratch_ / (path + "/" + kIndexFile)));
  EXPECT_TRUE(stdfs::is_directory(scratch_ / path)) << "the mount path stays usable";
  EXPECT_EQ(log_.Count("retired trees built for another GPU type"), 1);
  EXPECT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  // The same driver with another version changes no tree.
  scratch_.Write(path + "/" + kIndexFile, "compiled for H200");
  {
    std::lock_guard lock(found_mutex_);
    found_.driver_version = "580.65.06";
  }
  ++driver_version_;
  ASSERT_TRUE(Eventually([&] { return Status().node.driver == "580.65.06"; }));
  EXPECT_TRUE(stdfs::exists(scratch_ / (path + "/" + kIndexFile)));
}

// kubelet starts containers before the agent, and the driver takes longer than an engine needs to
// read its cache.
TEST_F(DaemonTest, RebootOnAnotherProcessorEmptiesMountedTreesBeforeTheDriverAnswers) {
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return Status().warmups.size() == 1 && daemon_->IsReady(); }));
  Stop();
  const std::string path = "root/" + MountPath(kMount);
  scratch_.Write(path + "/" + kIndexFile, "compiled for the earlier processor");
  const stdfs::path mounted = stdfs::canonical(scratch_ / path);
  const fs::Fd container(::open(mounted.c_str(), O_PATH | O_CLOEXEC));
  const std::string seen = fmt::format("/proc/self/fd/{}/{}", container.get(), kIndexFile);
  ASSERT_TRUE(stdfs::exists(seen));
  boot_id_ = "boot-2";
  found_.cpu_class = "x86-64-v2/other-1-1/00000000";
  hangs_ = true;
  first_ = seconds(600);
  Start();
  EXPECT_TRUE(Eventually([&] { return !stdfs::exists(seen); }));
  EXPECT_TRUE(Eventually([&] { return HasLogged(kRetired); }));
  EXPECT_TRUE(stdfs::is_directory(scratch_ / path));
}

// The driver fails while the root is opened for another GPU type: the new loop must report it.
TEST_F(DaemonTest, QueryThatFailsWhileTheRootIsOpenedIsReported) {
  blocking_log_ = std::make_unique<BlockingLog>(log_, kRetired);
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return Status().warmups.size() == 1 && Status().warmups[0].prepared.size() == 1; }));
  Install("nvidia/h200/sm_90");
  const bool is_blocked = Eventually([&] { return blocking_log_->is_blocked(); });
  const int before = probes_;
  probe_failures_ = 1'000'000;
  ++driver_version_;
  EXPECT_TRUE(Eventually([&] { return probes_ > before + 1; }));
  blocking_log_->Release();
  ASSERT_TRUE(is_blocked);
  ASSERT_TRUE(Eventually([&] { return !Status().conditions.empty(); }));
  EXPECT_EQ(Status().conditions[0].type, "GPUProbeFailed");
  EXPECT_EQ(Status().node.gpu_type, "nvidia/h200/sm_90");
}

TEST_F(DaemonTest, ChangedOfferOfKubeletStartsAQuery) {
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  EXPECT_EQ(probes_, 1);
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}}}, .warmups = {Warmup()}});
  EXPECT_TRUE(Eventually([&] { return probes_ == 2; }));
  EXPECT_TRUE(Eventually([&] { return Status().conditions.size() == 1; }));
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}},
                .published = {{"gpu.nvidia.com", "NVIDIA H200", "9.0.0", 8}}},
       .warmups = {Warmup()}});
  EXPECT_TRUE(Eventually([&] { return probes_ == 3; }));
}

TEST_F(DaemonTest, DriverThatFailsLaterKeepsTheGpuType) {
  Install("nvidia/h200/sm_90");
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return Status().node.gpu_type == "nvidia/h200/sm_90"; }));
  probe_failures_ = 1'000'000;
  ++driver_version_;
  ASSERT_TRUE(Eventually([&] { return Status().conditions.size() == 1; }));
  EXPECT_EQ(Status().conditions[0].type, "GPUProbeFailed");
  EXPECT_EQ(Status().node.gpu_type, "nvidia/h200/sm_90");
}

TEST_F(DaemonTest, StopsSoonInEveryState) {
  Put({.warmups = {Warmup()}});
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  EXPECT_LT(Stop(), Duration(20'000));

  server_.Intercept([](const kube::Request&) { return absl::UnavailableError("down"); });
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->port() != 0; }));
  EXPECT_LT(Stop(), Duration(20'000));

  probe_failures_ = 1'000'000;
  Start();
  ASSERT_TRUE(Eventually([&] { return probe_failures_ < 1'000'000; }));
  EXPECT_LT(Stop(), Duration(20'000));
  EXPECT_GT(probe_failures_, 990'000) << "time passes between two tries";
}

TEST_F(DaemonTest, FailsIfPortIsInUse) {
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->port() != 0; }));
  Config other = config_;
  other.listen_port = daemon_->port();
  Daemon second(other, {.client = server_,
                        .store = store_,
                        .clock = SystemClock(),
                        .random = [] { return 0.5; },
                        .log = log_,
                        .registry = *registry_,
                        .metrics = metrics_,
                        .probes = ProbesReturning(node_)});
  EXPECT_FALSE(second.Run({}).ok());
}

}  // namespace
}  // namespace cachewarm::agent
