// SPDX-License-Identifier: Apache-2.0
// The program cachewarm-agent as a process, its settings in a file, beside an API server that the
// test serves and a store in a directory.
#include "tests/fakes/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/steps/capturing/publication.h"
#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "lib/api/condition.h"
#include "lib/api/names.h"
#include "lib/api/node_cache.h"
#include "lib/api/reasons.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/codec/json_value.h"
#include "lib/fingerprint/key.h"
#include "lib/http/client.h"
#include "tests/fakes/await.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/free_port.h"
#include "tests/fakes/kube_front.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGpuType[] = "nvidia/h100-80gb-hbm3/sm_90";
constexpr char kCpuClass[] = "x86-64-v4/amd-25-17/5c0d9f21";
const Mount kWanted{"team", "llama", "uid-1", "image"};

class AgentProgram : public ::testing::Test {
 protected:
  AgentProgram() : server_(SystemClock()), front_(server_) {
    folder_.Write("kubeconfig", front_.Kubeconfig());
    folder_.Write("facts.yaml", fmt::format("gpuType: {}\ncpuClass: {}\n", kGpuType, kCpuClass));
    folder_.Write("key.pub", bundle::kSignerPublic);
    std::filesystem::create_directories(folder_ / "root");
  }

  // Runs the agent with this text behind the settings that every test needs.
  void Start(const std::string& file) {
    folder_.Write(
        "config.yaml",
        fmt::format("store: layout://{0}/store\nroot: {0}/root\nnodeFacts: {0}/facts.yaml\n"
                    "reserve: {{bytesPercent: 0, inodesPercent: 0}}\nlisten: 127.0.0.1:{1}\n{2}",
                    folder_.path(), port_, file));
    program_ = std::make_unique<fakes::Program>(
        std::vector<std::string>{fakes::BuiltProgram(CACHEWARM_AGENT), "--config",
                                 folder_ / "config.yaml", "--kubeconfig", folder_ / "kubeconfig",
                                 "--node-name=node-a"},
        folder_.path());
  }

  // An unsigned bundle for this kind of node, which the NodeCache of node-a wants.
  void WantABundle() {
    const TempDir tree;
    tree.Write(kIndexFile, "index");
    fingerprint::NodeFacts node;
    node.gpu_type = kGpuType;
    node.cpu_class = kCpuClass;
    api::CaptureRequest request{.id = "pod-1",
                                .warmup_uid = kWanted.uid,
                                .run_as = kWanted.run_as,
                                .factors = {.gpu_type = kGpuType,
                                            .cpu_class = kCpuClass,
                                            .image = "llama:1",
                                            .container = "server"}};
    request.key = *fingerprint::KeyOf(request.factors);
    bundle::LayoutStore store(folder_ / "store", SystemClock());
    const fs::Dir dir = tree.Open();
    const auto published = PublishTree({.store = store,
                                        .tree = dir,
                                        .table = caches::CacheTable::AllPresets(),
                                        .node = node,
                                        .request = request,
                                        .ns = kWanted.ns,
                                        .name = kWanted.name,
                                        .used = {.all = true}},
                                       {});
    ASSERT_TRUE(published.ok()) << published.status();
    const api::NodeCacheSpec spec{
        .warmups = {{.uid = kWanted.uid,
                     .ns = kWanted.ns,
                     .name = kWanted.name,
                     .run_as = {kWanted.run_as},
                     .bundles = {{.key = request.key,
                                  .digest = published->publication.digest,
                                  .bytes = published->publication.bytes}}}}};
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}},
                                    {"spec", api::EncodeSpec(spec)}});
  }

  api::NodeCacheStatus Status() const {
    const kube::Object object = server_.Find(kube::kNodeCaches, {"", "node-a"});
    return object == nullptr ? api::NodeCacheStatus{} : api::DecodeNodeCache(*object)->status;
  }
  // Waits until the wanted bundle is active or has failed.
  api::NodeBundle AwaitBundle() {
    api::NodeBundle bundle;
    fakes::Await(
        [&] {
          const api::NodeCacheStatus status = Status();
          if (!status.warmups.empty() && !status.warmups[0].bundles.empty()) {
            bundle = status.warmups[0].bundles[0];
          }
          return bundle.state == api::BundleState::kActive ||
                 bundle.state == api::BundleState::kFailed;
        },
        std::chrono::seconds(60));
    return bundle;
  }
  std::string Metrics() {
    const auto client = *http::MakeClient({});
    const auto answer =
        client->Send({.url = fmt::format("http://127.0.0.1:{}/metrics", port_)}, {});
    return answer.ok() ? answer->body : "";
  }

  TempDir folder_;
  const int port_ = fakes::FreePort();
  fakes::FakeApiServer server_;
  fakes::KubeFront front_;
  std::unique_ptr<fakes::Program> program_;
};

TEST_F(AgentProgram, FetchesReportsAndServesAsItsFileSays) {
  WantABundle();
  Start("");
  const api::NodeBundle bundle = AwaitBundle();
  ASSERT_EQ(bundle.state, api::BundleState::kActive) << bundle.message << program_->log();
  EXPECT_TRUE(std::filesystem::exists(
      std::filesystem::canonical(folder_ / ("root/" + MountPath(kWanted))) / kIndexFile));
  EXPECT_EQ(Status().node.gpu_type, kGpuType);
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("cachewarm_api_requests_total{code=\"200\",resource="
                                 "\"nodecaches\",verb=\"list\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("cachewarm_store_requests_total{code=\"OK\",operation="
                                 "\"read_manifest\"} 1"));
}

TEST_F(AgentProgram, RefusesWhatIsNotSignedByTheKeyOfItsFile) {
  WantABundle();
  Start("signature: {publicKeyFile: " + folder_ / "key.pub" + "}\n");
  const api::NodeBundle bundle = AwaitBundle();
  EXPECT_EQ(bundle.state, api::BundleState::kFailed);
  EXPECT_EQ(bundle.reason, api::reason::kSignatureRejected) << bundle.message;
}

TEST_F(AgentProgram, DoesNotStartWithAKeyThatItCannotRead) {
  for (const char* setting : {"publicKeyFile", "privateKeyFile"}) {
    Start(fmt::format("signature: {{{}: /nowhere/key}}\n", setting));
    EXPECT_EQ(program_->Wait(), 1);
    EXPECT_THAT(program_->log(), HasSubstr(fmt::format("signature.{}", setting)));
  }
}

TEST_F(AgentProgram, LogLevelDropsLinesBelowIt) {
  Start("logLevel: error\n");
  ASSERT_TRUE(fakes::Await([&] { return !Metrics().empty(); }, std::chrono::seconds(60)));
  EXPECT_THAT(program_->log(), Not(HasSubstr("agent started")));
  program_.reset();
  Start("logLevel: info\n");
  EXPECT_TRUE(
      fakes::Await([&] { return program_->Logged("agent started"); }, std::chrono::seconds(60)));
}

TEST_F(AgentProgram, PrintsTheFactsThatAreDeclared) {
  fakes::Program program({fakes::BuiltProgram(CACHEWARM_AGENT), "--print-node-facts",
                          "--node-facts", folder_ / "facts.yaml"},
                         folder_.path());
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(program.out(), HasSubstr(kGpuType));
  EXPECT_THAT(program.out(), HasSubstr(kCpuClass));
}

TEST_F(AgentProgram, FactsFileOfItsConfigurationMayBeMissing) {
  server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                  {"kind", "NodeCache"},
                                  {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}}});
  std::filesystem::remove(folder_ / "facts.yaml");
  Start("");
  EXPECT_TRUE(
      fakes::Await([&] { return !Status().node.cpu_class.empty(); }, std::chrono::seconds(60)))
      << program_->log();
  EXPECT_NE(Status().node.cpu_class, kCpuClass) << "it is probed";
}

// The driver is installed after the agent has started, and later replaced by another version.
TEST_F(AgentProgram, FollowsTheDriverBelowItsRoots) {
  server_.Put(kube::kNodeCaches,
              {{"apiVersion", "cachewarm.io/v1alpha1"},
               {"kind", "NodeCache"},
               {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}},
               {"spec", api::EncodeSpec({.node = {.devices = {{"nvidia.com/gpu", 8}}}})}});
  std::filesystem::remove(folder_ / "facts.yaml");
  Start(fmt::format("driverRoots: [{}]\n", folder_ / "driver"));
  const auto becomes = [&](const std::string& type, const std::string& hidden) {
    return fakes::Await(
        [&] {
          const api::NodeCacheStatus status = Status();
          const api::Condition* condition =
              api::FindCondition(status.conditions, api::kGpuNotVisible);
          return status.node.gpu_type == type && condition != nullptr &&
                 condition->status == hidden;
        },
        std::chrono::seconds(60));
  };
  EXPECT_TRUE(becomes("cpu", "True")) << program_->log();
  const auto install = [&](const std::string& scenario) {
    folder_.Write("driver/usr/lib64/libnvidia-ml.so.1.scenario", scenario);
    std::filesystem::copy(FAKE_NVML, folder_ / "driver/next");
    std::filesystem::rename(folder_ / "driver/next",
                            folder_ / "driver/usr/lib64/libnvidia-ml.so.1");
  };
  install("l4");
  EXPECT_TRUE(becomes("nvidia/l4/sm_89", "False")) << program_->log();
  install("h200x8");
  EXPECT_TRUE(becomes("nvidia/h200/sm_90", "False")) << program_->log();
  EXPECT_EQ(Status().node.devices, 8);
}

// A run of the agent with these words: exit code, standard output and standard error.
struct Ended {
  int code = -1;
  std::string out;
  std::string err;
};

TEST_F(AgentProgram, ExitCodeDistinguishesUsageErrorsFromFailures) {
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), fakes::BuiltProgram(CACHEWARM_AGENT));
    fakes::Program program(words, folder_.path());
    const int code = program.Wait().value_or(-1);
    return Ended{code, program.out(), program.log()};
  };
  const Ended usage = run({"--rot=/x"});
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, HasSubstr("cachewarm-agent: "));
  const Ended version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr("cachewarm-agent "));
  EXPECT_EQ(version.err, "");
  const Ended facts = run({"--print-node-facts", "--node-facts=" + folder_ / "none"});
  EXPECT_EQ(facts.code, 1);
  EXPECT_THAT(facts.err, HasSubstr(folder_ / "none"));
  EXPECT_EQ(facts.out, "");
  const std::string store = "--store=layout://" + folder_ / "store";
  const Ended unconfigured = run({store, "--kubeconfig=" + folder_ / "none"});
  EXPECT_EQ(unconfigured.code, 1);
  EXPECT_THAT(unconfigured.err, HasSubstr("cannot start"));
  const fakes::RawServer taken([](fakes::RawConnection&, int) {});
  const Ended busy =
      run({store, "--kubeconfig=" + folder_ / "kubeconfig", "--root=" + folder_ / "root",
           fmt::format("--listen=127.0.0.1:{}", taken.port())});
  EXPECT_EQ(busy.code, 1);
  EXPECT_THAT(busy.err, HasSubstr("agent failed"));
}

// A machine under load may add to it: the best of three counts.
TEST_F(AgentProgram, EndsWithinTwoSecondsOfSigterm) {
  WantABundle();
  milliseconds best = milliseconds::max();
  for (int i = 0; i < 3 && best > milliseconds(2000); ++i) {
    Start("");
    ASSERT_EQ(AwaitBundle().state, api::BundleState::kActive);
    ASSERT_TRUE(fakes::Await([&] { return !Metrics().empty(); }, std::chrono::seconds(60)));
    const auto begin = steady_clock::now();
    program_->Signal(SIGTERM);
    EXPECT_EQ(program_->Wait(), 0);
    best = std::min(best, std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin));
    EXPECT_TRUE(program_->Logged("agent stopped")) << program_->log();
  }
  EXPECT_LE(best, milliseconds(2000));
}

}  // namespace
}  // namespace cachewarm::agent
