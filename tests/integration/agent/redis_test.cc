// SPDX-License-Identifier: Apache-2.0
// The Redis clients of torch and Triton against a real redis-server and against the endpoint of
// the program cachewarm-agent. Needs the set-up of tools/setup: torch, the package redis and
// Debian's redis-tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/kube_front.h"
#include "tests/fakes/program.h"
#include "tests/fakes/source_dir.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/agent/remote/remote_fixture.h"

namespace cachewarm::agent {
namespace {

using codec::Json;
namespace stdfs = std::filesystem;

const Mount kServed{"team", "llama", "uid-1", "image"};
const std::string kSocket = "/redis/endpoint.sock";

std::string PathInSetUp(const std::string& path) {
  const char* cache = std::getenv("CACHEWARM_CACHE");
  const std::string home = std::getenv("HOME") == nullptr ? "/root" : std::getenv("HOME");
  return (cache != nullptr ? cache : home + "/.cache/cachewarm") + ("/" + path);
}

class RedisTest : public ::testing::Test {
 protected:
  RedisTest() : server_(SystemClock()), front_(server_) {
    folder_.Write("kubeconfig", front_.Kubeconfig());
    folder_.Write("facts.yaml", "gpuType: cpu\ncpuClass: x86-64-v4/amd-25-17/5c0d9f21\n");
    stdfs::create_directories(folder_ / "root");
    folder_.Write("config.yaml", fmt::format("store: layout://{0}/store\nroot: {0}/root\n"
                                             "nodeFacts: {0}/facts.yaml\nlisten: 127.0.0.1:0\n"
                                             "redis: {{endpoint: true}}\n",
                                             folder_.path()));
    const api::NodeCacheSpec spec{.warmups = {{.uid = kServed.uid,
                                               .ns = kServed.ns,
                                               .name = kServed.name,
                                               .run_as = {kServed.run_as},
                                               .caches = {{.name = "torchinductor-redis"}}}}};
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}},
                                    {"spec", api::EncodeSpec(spec)}});
  }

  void StartAgent() {
    agent_ = std::make_unique<fakes::Program>(
        std::vector<std::string>{fakes::BuiltProgram(CACHEWARM_AGENT), "--config",
                                 folder_ / "config.yaml", "--kubeconfig", folder_ / "kubeconfig",
                                 "--node-name=node-a"},
        folder_.path());
    ASSERT_TRUE(fakes::Await([&] { return Accepts(Endpoint()); }, std::chrono::seconds(60)))
        << agent_->log();
  }
  // Debian's redis-server is a link to redis-check-rdb, which looks at the name of its program. The
  // package redis-tools has that program and, unlike redis-server, starts no service.
  void StartRedis() {
    stdfs::create_directories(folder_ / "redis");
    stdfs::create_symlink("/usr/bin/redis-check-rdb", folder_ / "redis-server");
    redis_ = std::make_unique<fakes::Program>(
        std::vector<std::string>{folder_ / "redis-server", "--port", "0", "--unixsocket", Redis(),
                                 "--save", "", "--appendonly", "no", "--dir", folder_ / "redis"},
        folder_ / "redis");
    ASSERT_TRUE(fakes::Await([&] { return Accepts(Redis()); })) << redis_->out();
  }
  static bool Accepts(const std::string& path) { return RespClient(path).is_connected(); }

  std::string Tree() const { return folder_ / ("root/" + MountPath(kServed)); }
  std::string Endpoint() const { return Tree() + kSocket; }
  std::string Redis() const { return folder_ / "redis.sock"; }

  // Runs tests/workload/remote_caches.py and returns its result.
  Json Run(std::vector<std::string> words) {
    const std::string here = folder_ / fmt::format("run-{}", runs_++);
    stdfs::create_directories(here);
    ::setenv("PYTHONPATH", PathInSetUp("redis-client/current/site").c_str(), 1);
    words.insert(words.begin(), {PathInSetUp("torch/current/bin/python"),
                                 fakes::SourceDir() + "/tests/workload/remote_caches.py"});
    fakes::Program program(words, here);
    EXPECT_EQ(program.Wait(std::chrono::minutes(5)), 0) << program.log();
    const std::string out = program.out();
    const size_t at = out.find("RESULT ");
    const auto parsed = codec::ParseJson(at == std::string::npos ? "null" : out.substr(at + 7));
    EXPECT_TRUE(parsed.ok()) << out;
    return parsed.ok() ? *parsed : Json();
  }

  TempDir folder_;
  fakes::FakeApiServer server_;
  fakes::KubeFront front_;
  std::unique_ptr<fakes::Program> agent_;
  std::unique_ptr<fakes::Program> redis_;
  int runs_ = 0;
};

TEST_F(RedisTest, TorchHitsTheSameEntriesOnTheEndpointAsOnRedis) {
  StartAgent();
  StartRedis();
  const Json cold = Run({"torch", "unix://" + Endpoint()});
  EXPECT_EQ(cold["fx_hits"], 0);
  EXPECT_GE(cold["written"].size(), 3U);
  std::vector<std::string> copied = {"copy", "unix://" + Endpoint(), "unix://" + Redis()};
  for (const auto& [key, digest] : cold["written"].items()) {
    copied.push_back(key);
  }
  EXPECT_EQ(Run(copied)["equal"], true);
  const Json warm = Run({"torch", "unix://" + Endpoint()});
  const Json redis = Run({"torch", "unix://" + Redis()});
  EXPECT_EQ(warm["stats"], redis["stats"]);
  EXPECT_EQ(warm["stats"]["RemoteFxGraphCache"]["hit"], 2) << warm.dump();
  EXPECT_EQ(warm["stats"]["RemoteFxGraphCache"]["miss"], 0) << warm.dump();
  EXPECT_EQ(warm["stats"]["RemoteAOTAutogradCache"]["hit"], 1) << warm.dump();
  EXPECT_EQ(warm["fx_misses"], 0);
  EXPECT_EQ(warm["read"], cold["written"]) << "every value is read as it was written";
  EXPECT_EQ(redis["read"], cold["written"]);
  EXPECT_EQ(warm["written"].size(), 0U);
  EXPECT_LT(warm["max_diff"].get<double>(), 1e-5);
}

TEST_F(RedisTest, TritonRestoresTheSameFilesFromTheEndpointAsFromRedis) {
  StartAgent();
  StartRedis();
  const Json endpoint = Run({"triton", "unix://" + Endpoint()});
  const Json redis = Run({"triton", "unix://" + Redis()});
  EXPECT_EQ(endpoint, redis);
  EXPECT_EQ(endpoint["missing"], nullptr);
  EXPECT_EQ(endpoint["equal"], true);
  EXPECT_EQ(endpoint["files"].size(), 2U);
}

// A value of 16 MiB is on its way when the agent is killed.
TEST_F(RedisTest, AKilledAgentLeavesEveryValueWholeOrAbsent) {
  const std::string value(16U << 20U, 'v');
  for (int i = 0; i < 8; ++i) {
    StartAgent();
    {
      RespClient client(Endpoint());
      const std::string request = Request({"SET", "k", value});
      client.Send(std::string_view(request).substr(0, i % 2 == 0 ? request.size() : 1U << 20U));
    }
    agent_->Signal(SIGKILL);
    agent_->Wait();
    agent_.reset();
    for (const auto& entry : stdfs::directory_iterator(Tree() + "/redis")) {
      if (entry.is_regular_file()) {
        EXPECT_EQ(entry.file_size(), value.size()) << entry.path();
        EXPECT_EQ(entry.path().extension(), ".value");
      }
    }
    StartAgent();
    EXPECT_TRUE(stdfs::is_empty(folder_ / ("root/" + std::string(kRemoteStaging))));
    agent_.reset();
    stdfs::remove_all(Tree() + "/redis");
  }
}

TEST_F(RedisTest, TorchIgnoresTheErrorOfAnAbsentEndpoint) {
  EXPECT_EQ(Run({"refused", "unix://" + (folder_ / "none.sock")})["ignored"], true);
  StartAgent();
  const std::string endpoint = Endpoint();
  agent_->Signal(SIGKILL);
  agent_->Wait();
  ASSERT_TRUE(stdfs::exists(endpoint)) << "nobody listens on its socket";
  EXPECT_EQ(Run({"refused", "unix://" + endpoint})["ignored"], true);
}

TEST_F(RedisTest, EntriesSurviveARestartOfTheAgent) {
  StartAgent();
  RespClient(Endpoint()).Expect({"SET", "k", "v"}, "+OK\r\n");
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(), 0);
  EXPECT_FALSE(stdfs::exists(Endpoint()));
  StartAgent();
  RespClient(Endpoint()).Expect({"GET", "k"}, "$1\r\nv\r\n");
}

}  // namespace
}  // namespace cachewarm::agent
