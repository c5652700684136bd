// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_commands.h"

#include <gmock/gmock.h>

#include "lib/fs/file.h"
#include "tests/unit/agent/remote/remote_fixture.h"

namespace cachewarm::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RemoteCommandsTest : public RemoteFixture {
 protected:
  std::string Run(const std::vector<std::string>& words) {
    std::vector<resp::Argument> request;
    for (const std::string& word : words) {
      request.push_back({.bytes = word});
    }
    return RunArguments(request);
  }
  std::string RunArguments(const std::vector<resp::Argument>& request) {
    std::string reply;
    for (const ReplyPart& part : commands_.Execute(request)) {
      reply += part.text;
      if (part.file.ok()) {
        reply += *fs::ReadAll(part.file, part.file_bytes);
      }
    }
    return reply;
  }

  RemoteEntries entries_ = *RemoteEntries::Open(root_, kTree, Limits());
  RemoteCommands commands_{entries_, metrics_};
};

TEST_F(RemoteCommandsTest, GetReturnsWhatSetStored) {
  EXPECT_EQ(Run({"GET", kFxKey}), "$-1\r\n");
  EXPECT_EQ(Run({"set", kFxKey, kValue}), "+OK\r\n");
  EXPECT_EQ(Run({"get", kFxKey}), resp::BulkString(kValue));
}

TEST_F(RemoteCommandsTest, MgetReturnsEveryValueInOrder) {
  Run({"SET", "triton:A:k.cubin", "cubin"});
  EXPECT_EQ(Run({"MGET", "triton:A:k.json", "triton:A:k.cubin", "triton:A:k.json"}),
            "*3\r\n$-1\r\n$5\r\ncubin\r\n$-1\r\n");
}

TEST_F(RemoteCommandsTest, CountsHitsMissesAndCompileTimeByCache) {
  Run({"GET", kFxKey});
  Run({"SET", kFxKey, kValue});
  Run({"GET", kFxKey});
  Run({"MGET", kFxKey, "triton:A:k.cubin"});
  EXPECT_EQ(Requests("fx_graph", "miss"), 1);
  EXPECT_EQ(Requests("fx_graph", "stored"), 1);
  EXPECT_EQ(Requests("fx_graph", "hit"), 2);
  EXPECT_EQ(Requests("triton", "miss"), 1);
  EXPECT_EQ(Metric("cachewarm_redis_requests_total{cache=\"triton\",result=\"miss\"}"), 1);
  EXPECT_EQ(Metric("cachewarm_redis_compile_seconds_total{cache=\"fx_graph\"}"), 3);
}

TEST_F(RemoteCommandsTest, NamesTheCacheOfAKey) {
  EXPECT_EQ(RemoteCacheOf(kFxKey), "fx_graph");
  EXPECT_EQ(RemoteCacheOf("pt2:autograd-experimental::abc:c1"), "autograd");
  EXPECT_EQ(RemoteCacheOf("pt2:" + std::string(64, 'a') + "::best:c1"), "autotune");
  EXPECT_EQ(RemoteCacheOf("pt2:bundled-autotune-v1::x:c1"), "autotune");
  EXPECT_EQ(RemoteCacheOf("pt2:"), "autotune");
  EXPECT_EQ(RemoteCacheOf("triton:KEY:file"), "triton");
  EXPECT_EQ(RemoteCacheOf("session:42"), "other");
  EXPECT_EQ(RemoteCacheOf(""), "other");
}

// torch does not catch an error of SET around its AOTAutograd cache: the compile would fail.
TEST_F(RemoteCommandsTest, SetSucceedsAlsoWhenNothingIsStored) {
  RemoteEntryLimits limits = Limits();
  limits.value_bytes_max = 3;
  entries_ = *RemoteEntries::Open(root_, kTree, limits);
  EXPECT_EQ(Run({"SET", "pt2:autograd-experimental::a:c1", "long"}), "+OK\r\n");
  EXPECT_EQ(RunArguments({{.bytes = "SET"}, {.bytes = "k"}, {.bytes = "", .dropped = true}}),
            "+OK\r\n");
  EXPECT_EQ(RunArguments({{.bytes = "SET"}, {.bytes = "", .dropped = true}, {.bytes = "v"}}),
            "+OK\r\n");
  EXPECT_EQ(Run({"GET", "pt2:autograd-experimental::a:c1"}), "$-1\r\n");
  EXPECT_EQ(Run({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(Run({"GET", ""}), "$-1\r\n");
  EXPECT_EQ(Requests("autograd", "dropped"), 1);
  EXPECT_EQ(Requests("other", "dropped"), 2);
}

TEST_F(RemoteCommandsTest, AValueThatIsNotStoredReplacesTheOlderOne) {
  RemoteEntryLimits limits = Limits();
  limits.value_bytes_max = 3;
  entries_ = *RemoteEntries::Open(root_, kTree, limits);
  const resp::Argument dropped{.bytes = "", .dropped = true};
  Run({"SET", "k", "old"});
  EXPECT_EQ(RunArguments({{.bytes = "SET"}, {.bytes = "k"}, dropped}), "+OK\r\n");
  EXPECT_EQ(Run({"GET", "k"}), "$-1\r\n");
  Run({"SET", "k", "old"});
  EXPECT_EQ(Run({"SET", "k", "long"}), "+OK\r\n");
  EXPECT_EQ(Run({"GET", "k"}), "$-1\r\n");
}

TEST_F(RemoteCommandsTest, ADroppedKeyIsAMiss) {
  Run({"SET", "", "v"});
  EXPECT_EQ(RunArguments({{.bytes = "GET"}, {.bytes = "", .dropped = true}}), "$-1\r\n");
  EXPECT_EQ(RunArguments({{.bytes = "EXISTS"}, {.bytes = "", .dropped = true}}), ":0\r\n");
}

TEST_F(RemoteCommandsTest, SetIgnoresATimeToLiveAndRejectsConditions) {
  for (const char* option : {"EX", "px", "EXAT", "PXAT"}) {
    EXPECT_EQ(Run({"SET", "k", "v", option, "60"}), "+OK\r\n") << option;
  }
  EXPECT_EQ(Run({"SET", "k", "v", "KEEPTTL"}), "+OK\r\n");
  for (const char* option : {"NX", "XX", "GET"}) {
    EXPECT_THAT(Run({"SET", "other", "v", option}), StartsWith("-ERR option")) << option;
  }
  EXPECT_EQ(Run({"EXISTS", "k", "k", "other"}), ":2\r\n");
}

TEST_F(RemoteCommandsTest, HelloChoosesTheVersionOfTheProtocol) {
  EXPECT_THAT(Run({"HELLO"}), StartsWith("*8\r\n"));
  EXPECT_THAT(Run({"HELLO", "3"}), StartsWith("%4\r\n"));
  EXPECT_THAT(Run({"HELLO", "3"}), HasSubstr("$5\r\nproto\r\n:3\r\n"));
  EXPECT_EQ(Run({"GET", "k"}), "_\r\n");
  EXPECT_THAT(Run({"HELLO", "2"}), HasSubstr("$5\r\nproto\r\n:2\r\n"));
  EXPECT_EQ(Run({"GET", "k"}), "$-1\r\n");
  EXPECT_THAT(Run({"HELLO", "4"}), StartsWith("-NOPROTO"));
  EXPECT_THAT(Run({"HELLO", "3", "AUTH", "default", "secret"}), HasSubstr("has no users"));
}

TEST_F(RemoteCommandsTest, AnswersTheCommandsOfAConnectingClient) {
  EXPECT_EQ(Run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(Run({"PING", "x"}), "$1\r\nx\r\n");
  EXPECT_EQ(Run({"ECHO", "x"}), "$1\r\nx\r\n");
  EXPECT_EQ(Run({"SELECT", "0"}), "+OK\r\n");
  EXPECT_THAT(Run({"SELECT", "1"}), StartsWith("-ERR DB index"));
  EXPECT_EQ(Run({"CLIENT", "SETINFO", "LIB-NAME", "redis-py"}), "+OK\r\n");
  EXPECT_THAT(Run({"CLIENT", "LIST"}), StartsWith("-ERR subcommand 'LIST'"));
  EXPECT_THAT(Run({"CLIENT"}), StartsWith("-ERR"));
  EXPECT_FALSE(commands_.has_quit());
  EXPECT_EQ(Run({"QUIT"}), "+OK\r\n");
  EXPECT_TRUE(commands_.has_quit());
}

TEST_F(RemoteCommandsTest, RejectsEveryOtherCommand) {
  for (const char* command :
       {"DEL", "FLUSHALL", "KEYS", "CONFIG", "EVAL", "SUBSCRIBE", "MULTI", "AUTH", "", "GETS"}) {
    EXPECT_THAT(Run({command, "x"}), StartsWith("-ERR command '")) << command;
  }
  EXPECT_LT(Run({std::string(1000, 'x')}).size(), 200U);
}

TEST_F(RemoteCommandsTest, RejectsAWrongNumberOfArguments) {
  const std::vector<std::vector<std::string>> kRequests = {
      {"GET"}, {"GET", "a", "b"}, {"SET", "a"}, {"MGET"}, {"EXISTS"}, {"ECHO"}};
  for (const auto& request : kRequests) {
    EXPECT_THAT(Run(request), StartsWith("-ERR wrong number of arguments")) << request[0];
  }
}

}  // namespace
}  // namespace cachewarm::agent
