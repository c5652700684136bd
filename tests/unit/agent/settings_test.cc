// SPDX-License-Identifier: Apache-2.0
// For every setting of the agent one test that goes from the text of the file to what the agent
// does. Settings of the registry are in registry_settings_test.cc, those that main.cc uses in
// tests/integration/agent/program_test.cc; EverySettingHasATest keeps the list complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/api/reasons.h"
#include "lib/bundle/signature/signature.h"
#include "tests/fakes/setting_tests.h"
#include "tests/unit/agent/configured_agent.h"
#include "tests/unit/agent/remote/remote_fixture.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

using ::testing::HasSubstr;
namespace stdfs = std::filesystem;

class AgentSettings : public ConfiguredAgent {
 protected:
  // Ends the agent before the members below, which its store calls use.
  void TearDown() override {
    Release();
    Stop();
  }

  // Calls of the store named `call` wait until Release(); returns how many wait at most.
  void Hold(std::string_view call) {
    store_.SetFault([this, held = std::string(call)](std::string_view name) {
      if (name == held) {
        std::unique_lock lock(mutex_);
        ++waiting_;
        released_.wait(lock, [this] { return is_released_; });
      }
      return absl::OkStatus();
    });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    released_.notify_all();
  }
  int waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  void WriteKeys() {
    scratch_.Write("key.pub", bundle::kSignerPublic);
    scratch_.Write("key.pem", bundle::kSigner);
    scratch_.Write("other.pub", bundle::kOtherSignerPublic);
  }
  std::string PathOf(const std::string& name) const { return (scratch_ / name).string(); }

  mutable std::mutex mutex_;
  std::condition_variable released_;
  int waiting_ = 0;
  bool is_released_ = false;
};

TEST_F(AgentSettings, WithAPublicKeyAnUnsignedBundleIsRefused) {
  WriteKeys();
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want(digest);
  Start("signature: {publicKeyFile: " + PathOf("key.pub") + "}\n");
  const api::NodeBundle refused = AwaitBundle(api::BundleState::kFailed);
  EXPECT_EQ(refused.state, api::BundleState::kFailed);
  EXPECT_EQ(refused.reason, api::reason::kSignatureRejected) << refused.message;
}

TEST_F(AgentSettings, WithAPrivateKeyWhatIsPublishedIsSigned) {
  WriteKeys();
  api::CaptureRequest request = Request();
  request.settle_seconds = 1;
  request.started_time = request.ready_time = SystemClock().Now();
  stdfs::create_directories(scratch_ / "root");
  Put({.warmups = {
           {.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}}}});
  Start("signature: {privateKeyFile: " + PathOf("key.pem") + "}\n");
  ASSERT_TRUE(
      fakes::Await([&] { return stdfs::is_directory(scratch_ / ("root/" + MountPath(kMount))); }));
  scratch_.Write("root/" + MountPath(kMount) + "/" + kIndexFile, "compiled");
  request.started_time = request.ready_time = SystemClock().Now();
  Put({.warmups =
           {{.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}}},
       .captures = {request}});
  ASSERT_TRUE(fakes::Await(
      [&] {
        return !Status().captures.empty() &&
               Status().captures[0].state == api::CaptureState::kPushed;
      },
      std::chrono::seconds(60)));
  const auto keys = bundle::ReadPublicKeys(PathOf("key.pub"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  const auto check = bundle::CheckSignature({.store = store_, .repository = "team/llama"},
                                            Status().captures[0].digest, *keys, {});
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_TRUE(check->good) << check->problem;
}

TEST_F(AgentSettings, FactorSaltFileHashesTheKeyOfTheEngineIntoTheBundle) {
  scratch_.Write("salt", std::string(32, 's'));
  const std::vector<api::WantedWarmup> warmups = {
      {.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}}};
  stdfs::create_directories(scratch_ / "root");
  Put({.warmups = warmups});
  Start("", {"--factor-salt-file=" + PathOf("salt")});
  ASSERT_TRUE(
      fakes::Await([&] { return stdfs::is_directory(scratch_ / ("root/" + MountPath(kMount))); }));
  api::CaptureRequest request = Request();
  request.settle_seconds = 1;
  request.started_time = request.ready_time = SystemClock().Now();
  scratch_.Write("root/" + MountPath(kMount) + "/" + kIndexFile, "compiled");
  scratch_.Write("root/" + MountPath(kMount) +
                     "/vllm/torch_compile_cache/ab/rank_0_0/backbone/cache_key_factors.json",
                 "{\"env\": {\"VLLM_USE_V1\": \"secret\"}}");
  Put({.warmups = warmups, .captures = {request}});
  ASSERT_TRUE(fakes::Await(
      [&] {
        return !Status().captures.empty() &&
               Status().captures[0].state == api::CaptureState::kPushed;
      },
      std::chrono::seconds(60)));
  const auto bundle = bundle::ReadBundle({.store = store_, .repository = "team/llama"},
                                         Status().captures[0].digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(bundle->config.facts.engine_factors.contains("env.VLLM_USE_V1"));
}

TEST_F(AgentSettings, ByteLimitRefusesABundleThatDoesNotFit) {
  Want(Publish({{kIndexFile, std::string(100'000, 'x')}}));
  Start("byteLimit: 50000\n");
  const api::NodeBundle refused = AwaitBundle(api::BundleState::kFailed);
  EXPECT_EQ(refused.state, api::BundleState::kFailed);
  EXPECT_THAT(refused.message, HasSubstr("byteLimit is 50000"));
  EXPECT_EQ(Status().node.root.limit_bytes, 50'000);
}

TEST_F(AgentSettings, ReserveBytesPercentRefusesABundleThatLeavesTooLittleFree) {
  Want(Publish({{kIndexFile, "index"}}));
  Start("reserve: {bytesPercent: 100, inodesPercent: 0}\n");
  const api::NodeBundle refused = AwaitBundle(api::BundleState::kFailed);
  EXPECT_EQ(refused.reason, api::reason::kDiskFull);
  EXPECT_THAT(refused.message, HasSubstr("reserve.bytesPercent"));
}

TEST_F(AgentSettings, ReserveInodesPercentRefusesABundleThatLeavesTooFewFree) {
  Want(Publish({{kIndexFile, "index"}}));
  Start("reserve: {bytesPercent: 0, inodesPercent: 100}\n");
  const api::NodeBundle refused = AwaitBundle(api::BundleState::kFailed);
  EXPECT_EQ(refused.reason, api::reason::kDiskFull);
  EXPECT_THAT(refused.message, HasSubstr("reserve.inodesPercent"));
}

// One setting below `limits:`, and files that only this setting refuses.
struct LimitCase {
  std::string name;
  std::string setting;
  std::map<std::string, std::string> files;
};

// 1 MiB that cannot be compressed and 66 MiB of zeros: about 65 times larger than its layer.
std::string WideFile() {
  std::minstd_rand random(1);
  std::string bytes(67U << 20U, '\0');
  std::generate_n(bytes.begin(), 1U << 20U, [&] { return static_cast<char>(random() >> 8U); });
  return bytes;
}

class AgentLimit : public AgentSettings, public ::testing::WithParamInterface<LimitCase> {};

TEST_P(AgentLimit, RefusesABundleThatTheDefaultsTake) {
  Want(Publish(GetParam().files));
  Start("");
  ASSERT_EQ(AwaitBundle(api::BundleState::kActive).state, api::BundleState::kActive);
  Stop();
  stdfs::remove_all(scratch_ / "root");
  Want(Publish(GetParam().files));
  Start("limits: {" + GetParam().setting + "}\n");
  const api::NodeBundle refused = AwaitBundle(api::BundleState::kFailed);
  EXPECT_EQ(refused.state, api::BundleState::kFailed);
  EXPECT_EQ(refused.reason, api::reason::kBundleRejected) << refused.message;
}

const std::map<std::string, std::string> kTwoFiles = {{kIndexFile, "index"},
                                                      {kOutputFile, "out()"}};

INSTANTIATE_TEST_SUITE_P(All, AgentLimit,
                         ::testing::Values(LimitCase{"files", "files: 1", kTwoFiles},
                                           LimitCase{"fileBytes", "fileBytes: 4", kTwoFiles},
                                           LimitCase{"bytes", "bytes: 9", kTwoFiles},
                                           LimitCase{
                                               "ratio", "ratio: 1", {{kIndexFile, WideFile()}}}),
                         [](const auto& each) { return each.param.name; });

TEST_F(AgentSettings, ScrubIntervalSecondsIsWhenDamageIsFound) {
  is_fake_time_ = true;
  Want(Publish({{kIndexFile, "index"}}));
  Start("scrub: {intervalSeconds: 60}\n");
  ASSERT_EQ(AwaitBundle(api::BundleState::kActive).state, api::BundleState::kActive);
  const std::string generation = Status().warmups[0].generation;
  std::ofstream(scratch_ / ("root/" + GenerationPath(generation) + "/" + kIndexFile)) << "other";
  const WallTime damaged_at = clock_.Now();
  const auto was_found = [&] {
    clock_.Advance(Duration(500));
    return registry_->Serialize().find("cachewarm_scrubs_total{result=\"damaged\"} 1") !=
           std::string::npos;
  };
  EXPECT_TRUE(
      fakes::Await([&] { return was_found() || clock_.Now() - damaged_at > Duration(250'000); },
                   std::chrono::seconds(60)));
  EXPECT_TRUE(was_found()) << "by default the first pass comes after 270 seconds";
}

class AgentWorkers : public AgentSettings, public ::testing::WithParamInterface<int> {};

TEST_P(AgentWorkers, AreTheFetchesAtTheSameTime) {
  constexpr int kWarmups = 6;
  std::vector<api::WantedWarmup> warmups;
  for (int i = 0; i < kWarmups; ++i) {
    warmups.push_back(WarmupOf(Publish({{kIndexFile, "index" + std::to_string(i)}}), i));
  }
  Hold("ReadManifest");
  Put({.warmups = warmups});
  Start("agentWorkers: " + std::to_string(GetParam()) + "\n");
  EXPECT_TRUE(fakes::Await([&] { return waiting() >= GetParam(); }));
  // Each start of a fetch would have come with the first.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(waiting(), GetParam());
  Release();
}

INSTANTIATE_TEST_SUITE_P(All, AgentWorkers, ::testing::Values(1, 5));

int ThreadsOfThisProcess() {
  const stdfs::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(AgentSettings, TransferThreadsAreThoseOfAFetch) {
  Want(Publish({{kIndexFile, "index"}}));
  std::vector<int> before;
  std::vector<int> during;
  for (const int threads : {1, 12}) {
    is_released_ = false;
    waiting_ = 0;
    stdfs::remove_all(scratch_ / "root");
    // The manifest's config is the first blob that is read, the layer the second.
    store_.SetFault([this, blobs = std::make_shared<std::atomic<int>>(0)](std::string_view name) {
      if (name == "ReadBlob" && ++*blobs == 2) {
        std::unique_lock lock(mutex_);
        ++waiting_;
        released_.wait(lock, [this] { return is_released_; });
      }
      return absl::OkStatus();
    });
    Start("transfer: {threads: " + std::to_string(threads) + "}\n");
    ASSERT_TRUE(fakes::Await([&] { return waiting() == 1; }));
    during.push_back(ThreadsOfThisProcess());
    Release();
    ASSERT_EQ(AwaitBundle(api::BundleState::kActive).state, api::BundleState::kActive);
    Stop();
  }
  EXPECT_GE(during[1] - during[0], 9) << "11 more, but for threads that end in between";
}

class AgentRedis : public AgentSettings {
 protected:
  static api::WantedWarmup RedisWarmup() {
    api::WantedWarmup warmup = WarmupOf(DigestOf("nothing"));
    warmup.caches = {{.name = "torchinductor-redis"}};
    return warmup;
  }
  stdfs::path SocketOf(const api::WantedWarmup& warmup) const {
    const Mount mount{warmup.ns, warmup.name, warmup.uid, warmup.run_as[0]};
    return scratch_ / ("root/" + MountPath(mount) + "/redis/endpoint.sock");
  }
};

class AgentRedisEndpoint : public AgentRedis, public ::testing::WithParamInterface<bool> {};

TEST_P(AgentRedisEndpoint, EndpointServesOnlyWarmupsThatSelectThePreset) {
  const api::WantedWarmup with = RedisWarmup();
  const api::WantedWarmup without = WarmupOf(DigestOf("nothing"), 1);
  Put({.warmups = {with, without}});
  Start(GetParam() ? "redis: {endpoint: true}\n" : "");
  ASSERT_TRUE(fakes::Await([&] {
    return stdfs::exists(SocketOf(with)) == GetParam() && Status().warmups.size() == 2;
  })) << log_.Text();
  EXPECT_FALSE(stdfs::exists(SocketOf(without)));
  Stop();
  EXPECT_FALSE(stdfs::exists(SocketOf(with)));
}

INSTANTIATE_TEST_SUITE_P(All, AgentRedisEndpoint, ::testing::Bool());

// The GPU type, the CPU class and the driver are equal, so that the sync loop, its watches and its
// clients stay.
TEST_F(AgentRedis, ClientsStayConnectedWhenADriverQueryFails) {
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  probes_.all = [this, fails](std::stop_token) -> absl::StatusOr<fingerprint::NodeFacts> {
    if (*fails) {
      return absl::UnavailableError("driver is restarting");
    }
    return node_;
  };
  Put({.warmups = {RedisWarmup()}});
  Start("redis: {endpoint: true}\n");
  ASSERT_TRUE(fakes::Await([&] { return stdfs::exists(SocketOf(RedisWarmup())); },
                           std::chrono::seconds(60)))
      << log_.Text();
  RespClient client(SocketOf(RedisWarmup()));
  ASSERT_TRUE(client.is_connected());
  client.Expect({"PING"}, "+PONG\r\n");
  *fails = true;
  Put({.node = {.devices = {{"nvidia.com/gpu", 8}}}, .warmups = {RedisWarmup()}});
  const auto has_reported = [&] {
    const std::vector<api::Condition> conditions = Status().conditions;
    return std::any_of(conditions.begin(), conditions.end(), [](const api::Condition& condition) {
      return condition.type == "GPUProbeFailed" && condition.status == "True";
    });
  };
  EXPECT_TRUE(fakes::Await(has_reported, std::chrono::seconds(60))) << log_.Text();
  client.Expect({"PING"}, "+PONG\r\n");
}

TEST_F(AgentSettings, RootIsWhereDirectoriesAreMade) {
  Put({.warmups = {WarmupOf(DigestOf("nothing"))}});
  Start("");
  EXPECT_TRUE(
      fakes::Await([&] { return stdfs::is_directory(scratch_ / ("root/" + MountPath(kMount))); }));
}

TEST_F(AgentSettings, NodeNameIsTheNodeCacheThatIsFollowed) {
  Put({.warmups = {WarmupOf(DigestOf("nothing"))}});
  server_.Put(kube::kNodeCaches, {{"metadata", {{"name", "host-1"}, {"uid", "nc-2"}}}});
  Start("");
  EXPECT_TRUE(fakes::Await([&] { return Status().node.gpu_type == "cpu"; }));
  EXPECT_FALSE(server_.Find(kube::kNodeCaches, {"", "host-1"})->contains("status"));
}

TEST_F(AgentSettings, ListenIsTheAddressOfTheMetrics) {
  Start("");
  ASSERT_TRUE(fakes::Await([&] { return daemon_->port() != 0; }));
  const int first = daemon_->port();
  EXPECT_EQ(Get("/metrics").status, 200);
  Stop();
  const absl::StatusOr<Config> config = Configured("");
  ASSERT_TRUE(config.ok());
  Start("logLevel: info\n");
  ASSERT_TRUE(fakes::Await([&] { return daemon_->port() != 0; }));
  EXPECT_NE(first, 8080) << "port 0 takes a free one";
}

// The name of each flag of --help, and the test that fails when the setting does nothing.
TEST(EverySettingHasATest, OfTheAgent) {
  const std::string here = "tests/unit/agent/settings_test.cc";
  const std::string registry = "tests/unit/agent/registry_settings_test.cc";
  const std::string program = "tests/integration/agent/program_test.cc";
  fakes::ExpectATestForEverySetting(
      HelpText(),
      {
          {"--config", {program, "FetchesReportsAndServesAsItsFileSays"}},
          {"--node-name", {here, "NodeNameIsTheNodeCacheThatIsFollowed"}},
          {"--root", {here, "RootIsWhereDirectoriesAreMade"}},
          {"--store", {program, "FetchesReportsAndServesAsItsFileSays"}},
          {"--byte-limit", {here, "ByteLimitRefusesABundleThatDoesNotFit"}},
          {"--reserve-bytes-percent",
           {here, "ReserveBytesPercentRefusesABundleThatLeavesTooLittleFree"}},
          {"--reserve-inodes-percent",
           {here, "ReserveInodesPercentRefusesABundleThatLeavesTooFewFree"}},
          {"--node-facts", {program, "PrintsTheFactsThatAreDeclared"}},
          {"--driver-roots", {program, "FollowsTheDriverBelowItsRoots"}},
          {"--kubeconfig", {program, "FetchesReportsAndServesAsItsFileSays"}},
          {"--factor-salt-file", {here, "FactorSaltFileHashesTheKeyOfTheEngineIntoTheBundle"}},
          {"--listen", {program, "FetchesReportsAndServesAsItsFileSays"}},
          {"--workers", {here, "AreTheFetchesAtTheSameTime"}},
          {"--transfer-threads", {here, "TransferThreadsAreThoseOfAFetch"}},
          {"--signature-public-key-file", {here, "WithAPublicKeyAnUnsignedBundleIsRefused"}},
          {"--signature-private-key-file", {here, "WithAPrivateKeyWhatIsPublishedIsSigned"}},
          {"--scrub-interval-seconds", {here, "ScrubIntervalSecondsIsWhenDamageIsFound"}},
          {"--limit-files", {here, "RefusesABundleThatTheDefaultsTake"}},
          {"--limit-file-bytes", {here, "RefusesABundleThatTheDefaultsTake"}},
          {"--limit-bytes", {here, "RefusesABundleThatTheDefaultsTake"}},
          {"--limit-ratio", {here, "RefusesABundleThatTheDefaultsTake"}},
          {"--redis-endpoint", {here, "EndpointServesOnlyWarmupsThatSelectThePreset"}},
          {"--log-level", {program, "LogLevelDropsLinesBelowIt"}},
          {"--registry-insecure", {registry, "InsecureHostsAreSpokenToInPlainHttp"}},
          {"--registry-ca-file", {registry, "CaFileDecidesWhichServerIsTrusted"}},
          {"--registry-client-certificate-file", {registry, "ClientCertificateIsShown"}},
          {"--registry-client-key-file", {registry, "ClientCertificateIsShown"}},
          {"--registry-auth-file", {registry, "AuthFileGivesTheCredentials"}},
          {"--registry-mirrors", {registry, "MirrorsAreReadFirst"}},
          {"--registry-proxy", {registry, "ProxyCarriesTheRequests"}},
          {"--registry-max-connections", {registry, "MaxConnectionsBoundsDownloads"}},
          {"--registry-bytes-per-second", {registry, "BytesPerSecondSlowsDownloads"}},
      });
}

}  // namespace
}  // namespace cachewarm::agent
