// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_connection.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <filesystem>
#include <optional>

#include "lib/base/digest.h"
#include "tests/unit/agent/remote/remote_fixture.h"

namespace cachewarm::agent {
namespace {

using ::testing::StartsWith;

class RemoteConnectionTest : public RemoteFixture {
 protected:
  RemoteConnectionTest() { Connect(); }

  void Connect(int type = SOCK_STREAM) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair), 0);
    connection_.emplace(fs::Fd(pair[0]),
                        RemoteConnection::Shared{.entries = entries_,
                                                 .metrics = metrics_,
                                                 .of_tree = of_tree_,
                                                 .of_all = of_all_,
                                                 .limits = limits_},
                        now_);
    client_.emplace(pair[1]);
  }

  MonoTime now_{Duration(1'000'000)};
  RemoteLimits limits_;
  RequestMemory of_tree_;
  RequestMemory of_all_;
  RemoteEntries entries_ = *RemoteEntries::Open(root_, kTree, Limits());
  std::optional<RemoteConnection> connection_;
  std::optional<RespClient> client_;
};

TEST_F(RemoteConnectionTest, AnswersPipelinedRequestsInOrder) {
  std::string requests;
  std::string replies;
  for (int i = 0; i < 1000; ++i) {
    requests += Request({"ECHO", std::to_string(i)});
    replies += resp::BulkString(std::to_string(i));
  }
  client_->Send(requests);
  std::string received;
  // The kernel buffers only some hundred short replies.
  for (int i = 0; i < 1000 && received.size() < replies.size(); ++i) {
    ASSERT_TRUE(connection_->Advance(now_));
    received += client_->Receive(replies.size() - received.size());
  }
  EXPECT_EQ(received, replies);
  EXPECT_EQ(connection_->events(), POLLIN);
}

// Each read of a SOCK_SEQPACKET socket returns one message, or its first byte.
TEST_F(RemoteConnectionTest, LeavesTheRestOfALongInputToTheNextIteration) {
  Connect(SOCK_SEQPACKET);
  for (int i = 0; i < 40; ++i) {
    client_->Send(Request({"ECHO", std::to_string(i)}));
  }
  std::vector<int> answered;
  for (int iteration = 0; iteration < 3; ++iteration) {
    ASSERT_TRUE(connection_->Advance(now_));
    EXPECT_EQ(connection_->events(), POLLIN) << "poll() reports the unread input";
    int replies = 0;
    while (!client_->Receive(1).empty()) {
      ++replies;
    }
    answered.push_back(replies);
  }
  EXPECT_EQ(answered, (std::vector<int>{16, 16, 8}));
}

TEST_F(RemoteConnectionTest, ReadsNoFurtherRequestWhileTheClientReadsNoReply) {
  const std::string value(8U << 20U, 'v');
  ASSERT_TRUE(entries_.Store("k", value).ok());
  client_->Send(Request({"GET", "k"}) + Request({"SET", "other", "v"}));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(connection_->events(), POLLOUT);
  EXPECT_FALSE(entries_.Contains("other"));
  const std::string expected = resp::BulkString(value) + "+OK\r\n";
  std::string reply;
  while (reply.size() < expected.size()) {
    const size_t part = std::min<size_t>(100'000, expected.size() - reply.size());
    reply += client_->Receive(part);
    ASSERT_TRUE(connection_->Advance(now_));
  }
  EXPECT_EQ(reply, expected);
  EXPECT_TRUE(entries_.Contains("other"));
}

TEST_F(RemoteConnectionTest, EndsAfterAProtocolErrorWithItsReason) {
  client_->Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_FALSE(connection_->Advance(now_));
  connection_.reset();
  EXPECT_THAT(client_->Receive(200), StartsWith("-ERR Protocol error: expected an array"));
}

TEST_F(RemoteConnectionTest, EndsWhenTheClientHasQuitOrClosed) {
  client_->Send(Request({"QUIT"}));
  EXPECT_FALSE(connection_->Advance(now_));
  EXPECT_EQ(client_->Receive(5), "+OK\r\n");
  Connect();
  EXPECT_TRUE(connection_->Advance(now_));
  client_.reset();
  EXPECT_FALSE(connection_->Advance(now_));
}

TEST_F(RemoteConnectionTest, EndsWhenAPodTruncatesTheServedFile) {
  ASSERT_TRUE(entries_.Store("k", std::string(8U << 20U, 'v')).ok());
  client_->Send(Request({"GET", "k"}));
  EXPECT_TRUE(connection_->Advance(now_));
  std::filesystem::resize_file(Folder() + "/" + DigestOf("k").hex() + ".value", 10);
  bool is_open = true;
  for (int i = 0; i < 100 && is_open; ++i) {
    client_->Receive(50'000);
    is_open = connection_->Advance(now_);
  }
  EXPECT_FALSE(is_open);
}

TEST_F(RemoteConnectionTest, ARequestAndAReplyHaveDeadlinesThatBytesDoNotExtend) {
  const MonoTime idle = now_ + limits_.idle;
  EXPECT_EQ(connection_->deadline(), idle);
  client_->Send("*1");
  EXPECT_TRUE(connection_->Advance(now_));
  const MonoTime first = now_ + limits_.request;
  EXPECT_EQ(connection_->deadline(), first);
  now_ += Duration(5'000);
  client_->Send("\r\n$4\r\nPI");
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(connection_->deadline(), first);
  client_->Send("NG\r\n");
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(connection_->deadline(), now_ + limits_.idle);
  ASSERT_TRUE(entries_.Store("k", std::string(8U << 20U, 'v')).ok());
  client_->Send(Request({"GET", "k"}));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(connection_->deadline(), now_ + limits_.reply);
  client_->Receive(100'000);
  EXPECT_TRUE(connection_->Advance(now_ + Duration(5'000)));
  EXPECT_EQ(connection_->deadline(), now_ + limits_.reply);
}

TEST_F(RemoteConnectionTest, DropsAValueForWhichNoMemoryIsLeft) {
  limits_.request_bytes_per_tree = 100'000;
  of_tree_.bytes = 50'000;
  const std::string value(60'000, 'v');
  client_->Send(Request({"SET", "k", value}));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(client_->Receive(5), "+OK\r\n");
  EXPECT_FALSE(entries_.Contains("k"));
  of_tree_.bytes = 0;
  of_all_.bytes = limits_.request_bytes_max;
  client_->Expect({"PING"}, "");
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(client_->Receive(7), "+PONG\r\n");
  client_->Send(Request({"SET", "k", value}));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(client_->Receive(5), "+OK\r\n");
  EXPECT_FALSE(entries_.Contains("k"));
}

TEST_F(RemoteConnectionTest, ReturnsItsMemoryAfterTheRequestAndAtItsEnd) {
  const std::string value(60'000, 'v');
  const std::string request = Request({"SET", "k", value});
  client_->Send(request.substr(0, 1000));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(of_tree_.bytes, 60'000);
  EXPECT_EQ(of_all_.bytes, 60'000);
  client_->Send(request.substr(1000));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_TRUE(entries_.Contains("k"));
  EXPECT_EQ(of_tree_.bytes, 0);
  client_->Send(request.substr(0, 1000));
  EXPECT_TRUE(connection_->Advance(now_));
  EXPECT_EQ(of_all_.bytes, 60'000);
  connection_.reset();
  EXPECT_EQ(of_tree_.bytes, 0);
  EXPECT_EQ(of_all_.bytes, 0);
}

}  // namespace
}  // namespace cachewarm::agent
