// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_endpoint.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <list>
#include <thread>

#include "agent/evidence/classify.h"
#include "agent/evidence/tree_watcher.h"
#include "lib/base/digest.h"
#include "lib/caches/cache_table.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/unit/agent/remote/remote_fixture.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

class RemoteEndpointTest : public RemoteFixture {
 protected:
  void Start(const RemoteLimits& limits = {}) {
    auto endpoint = RemoteEndpoint::Start({.root = root_,
                                           .clock = clock_,
                                           .log = log_,
                                           .metrics = metrics_,
                                           .limits = limits,
                                           .entry_limits = Limits()});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
  }
  void Serve(const std::set<std::string>& trees) {
    endpoint_->Serve(trees);
    for (const std::string& tree : trees) {
      EXPECT_TRUE(fakes::Await([&] { return stdfs::exists(SocketOf(tree)); })) << tree;
    }
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  std::unique_ptr<RemoteEndpoint> endpoint_;
};

TEST_F(RemoteEndpointTest, ServesEachTreeOnItsOwnSocketAndEntries) {
  const std::string other = ".gen/tree-2";
  ASSERT_TRUE(root_.MakeDirs(other, 0777).ok());
  Start();
  Serve({kTree, other});
  RespClient client(SocketOf());
  client.Expect({"SET", "k", "v"}, "+OK\r\n");
  client.Expect({"GET", "k"}, "$1\r\nv\r\n");
  RespClient(SocketOf(other)).Expect({"GET", "k"}, "$-1\r\n");
}

TEST_F(RemoteEndpointTest, AnyUserMayConnectAndNobodyElseMayEnterTheStagingDirectory) {
  Start();
  Serve({kTree});
  EXPECT_EQ(stdfs::status(SocketOf()).permissions(), stdfs::perms(0666));
  EXPECT_EQ(stdfs::status(Folder()).permissions(), stdfs::perms(0777));
  EXPECT_EQ(stdfs::status(folder_ / std::string(kRemoteStaging)).permissions(), stdfs::perms(0700));
}

// A start with the endpoint is classified by file events, like one that reads and writes files.
TEST_F(RemoteEndpointTest, ReadsAndWritesAreEvidenceInTheTree) {
  auto watcher = Watcher::Start({}, SystemClock(), log_);
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  Start();
  Serve({kTree});
  ASSERT_TRUE((*watcher)
                  ->AddTree({.generation = "tree-1",
                             .warmup_uid = "uid-1",
                             .directory = folder_ / kTree,
                             .fresh = true})
                  .ok());
  const auto table = caches::CacheTable::Make({{.name = "torchinductor-redis"}});
  const auto classify = [&](WallTime begin) {
    const WallTime end = SystemClock().Now() + Duration(10'000);
    const api::StartWindow window{.started_time = begin, .ready_time = end};
    return ClassifyStart((*watcher)->Read("uid-1", begin, end), window, *table);
  };
  RespClient client(SocketOf());
  const WallTime cold = SystemClock().Now();
  client.Expect({"GET", kFxKey}, "$-1\r\n");
  client.Expect({"SET", kFxKey, kValue}, "+OK\r\n");
  const Observation miss = classify(cold);
  EXPECT_EQ(miss.result, api::StartResult::kMiss);
  EXPECT_EQ(miss.entries_written, 1);
  EXPECT_EQ(miss.entries_opened, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const WallTime warm = SystemClock().Now();
  client.Expect({"GET", kFxKey}, resp::BulkString(kValue));
  client.Expect({"PING"}, "+PONG\r\n");
  const Observation hit = classify(warm);
  EXPECT_EQ(hit.result, api::StartResult::kHit);
  EXPECT_EQ(hit.entries_opened, 1);
  EXPECT_EQ(hit.entries_written, 0);
}

TEST_F(RemoteEndpointTest, StopsServingATreeThatIsNoLongerWanted) {
  Start();
  Serve({kTree});
  RespClient client(SocketOf());
  client.Expect({"PING"}, "+PONG\r\n");
  endpoint_->Serve({});
  EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(fakes::Await([&] { return !stdfs::exists(SocketOf()); }));
}

TEST_F(RemoteEndpointTest, ReplacesASocketThatAPodOrAKilledAgentLeft) {
  Start();
  Serve({kTree});
  RespClient client(SocketOf());
  client.Expect({"SET", "k", "v"}, "+OK\r\n");
  stdfs::remove(SocketOf());
  Serve({kTree});
  client.Expect({"GET", "k"}, "$1\r\nv\r\n");
  RespClient(SocketOf()).Expect({"GET", "k"}, "$1\r\nv\r\n");
  stdfs::remove(SocketOf());
  stdfs::create_symlink(folder_ / "elsewhere", SocketOf());
  endpoint_->Serve({kTree});
  EXPECT_TRUE(fakes::Await([&] { return stdfs::is_socket(stdfs::symlink_status(SocketOf())); }));
  EXPECT_FALSE(stdfs::exists(folder_ / "elsewhere"));
  endpoint_.reset();
  ASSERT_FALSE(stdfs::exists(SocketOf()));
  folder_.Write(std::string(kTree) + "/redis/endpoint.sock", "");
  Start();
  endpoint_->Serve({kTree});
  EXPECT_TRUE(fakes::Await([&] { return stdfs::is_socket(SocketOf()); }));
}

TEST_F(RemoteEndpointTest, AtItsStartNothingIsLeftOfAnInterruptedSet) {
  folder_.Write(std::string(kRemoteStaging) + "/" + DigestOf("k").hex() + ".value", "half");
  Start();
  Serve({kTree});
  RespClient(SocketOf()).Expect({"GET", "k"}, "$-1\r\n");
  EXPECT_TRUE(stdfs::is_empty(folder_ / std::string(kRemoteStaging)));
}

TEST_F(RemoteEndpointTest, LogsOnceWhyATreeCannotBeServed) {
  stdfs::create_directory(folder_ / "elsewhere");
  stdfs::create_directory_symlink(folder_ / "elsewhere", Folder());
  Start();
  for (int i = 0; i < 5; ++i) {
    endpoint_->Serve({kTree});
    EXPECT_TRUE(fakes::Await([&] { return log_.Has("cannot serve the Redis endpoint"); }));
  }
  EXPECT_TRUE(stdfs::is_empty(folder_ / "elsewhere"));
  stdfs::remove(Folder());
  Serve({kTree});
  RespClient(SocketOf()).Expect({"PING"}, "+PONG\r\n");
  EXPECT_EQ(log_.Count("cannot serve the Redis endpoint"), 1);
}

TEST_F(RemoteEndpointTest, ClosesAClientThatSendsARequestTooSlowly) {
  Start();
  Serve({kTree});
  RespClient slow(SocketOf());
  slow.Send("*2\r\n$3\r\nGET\r\n");
  RespClient other(SocketOf());
  other.Expect({"PING"}, "+PONG\r\n");
  ASSERT_TRUE(fakes::Await([&] { return Metric("cachewarm_redis_connections") == 2; }));
  clock_.Advance(RemoteLimits().request);
  EXPECT_TRUE(slow.IsClosed());
  other.Expect({"PING"}, "+PONG\r\n");
}

TEST_F(RemoteEndpointTest, AHalfReceivedValueIsNotStored) {
  Start();
  Serve({kTree});
  const std::string request = Request({"SET", "k", std::string(100'000, 'v')});
  {
    RespClient dying(SocketOf());
    dying.Send(request.substr(0, request.size() - 1));
  }
  RespClient(SocketOf()).Expect({"GET", "k"}, "$-1\r\n");
  EXPECT_TRUE(fakes::Await([&] { return Metric("cachewarm_redis_connections") == 0; }));
}

TEST_F(RemoteEndpointTest, AnnouncedSizesTakeNoMemory) {
  Start();
  Serve({kTree});
  std::list<RespClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(SocketOf());
    clients.back().Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nx");
  }
  RespClient huge(SocketOf());
  huge.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99999999999\r\n");
  EXPECT_THAT(huge.Receive(100),
              ::testing::StartsWith("-ERR Protocol error: an argument may have"));
  RespClient client(SocketOf());
  client.Expect({"SET", "k", std::string(1U << 20U, 'v')}, "+OK\r\n");
  client.Expect({"EXISTS", "k"}, ":1\r\n");
}

TEST_F(RemoteEndpointTest, TenThousandClientsOfOneTreeDoNotAffectAnother) {
  const std::string other = ".gen/tree-2";
  ASSERT_TRUE(root_.MakeDirs(other, 0777).ok());
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Start();
  Serve({kTree, other});
  std::list<RespClient> kept;
  const RemoteLimits limits;
  for (int i = 0; i < 10'000; ++i) {
    RespClient client(SocketOf());
    ASSERT_TRUE(client.is_connected());
    client.Send("*1\r\n");
    if (i < limits.connections_per_tree) {
      kept.push_back(std::move(client));
    }
  }
  RespClient(SocketOf(other)).Expect({"PING"}, "+PONG\r\n");
  ASSERT_TRUE(fakes::Await([&] {
    return Metric("cachewarm_redis_rejected_connections_total") >=
           10'000 - limits.connections_per_tree;
  }));
  kept.clear();
  ASSERT_TRUE(fakes::Await([&] { return Metric("cachewarm_redis_connections") <= 1; }));
  RespClient(SocketOf()).Expect({"PING"}, "+PONG\r\n");
}

TEST_F(RemoteEndpointTest, AllTreesTogetherHaveALimitOfClients) {
  const std::string other = ".gen/tree-2";
  ASSERT_TRUE(root_.MakeDirs(other, 0777).ok());
  Start({.connections_max = 2});
  Serve({kTree, other});
  RespClient first(SocketOf());
  first.Expect({"PING"}, "+PONG\r\n");
  {
    RespClient second(SocketOf(other));
    second.Expect({"PING"}, "+PONG\r\n");
    EXPECT_TRUE(RespClient(SocketOf(other)).IsClosed());
    EXPECT_EQ(Metric("cachewarm_redis_rejected_connections_total"), 1);
  }
  ASSERT_TRUE(fakes::Await([&] { return Metric("cachewarm_redis_connections") == 1; }));
  RespClient(SocketOf(other)).Expect({"PING"}, "+PONG\r\n");
}

}  // namespace
}  // namespace cachewarm::agent
