// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "lib/http/client.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/http/client_ends.h"

namespace cachewarm::http {
namespace {

using fakes::RawChunk;
using fakes::RawConnection;
using fakes::RawServer;
using testing::Collector;
using testing::kChunkedHead;
using testing::NewClient;
using testing::Within;

// Runs a request against a server that never answers and stops it once `reached`.
void ExpectStops(RawServer& server, const Request& request, const std::function<bool()>& reached) {
  std::stop_source stop;
  Collector sink;
  const auto client = NewClient();
  auto running = std::async(
      std::launch::async, [&] { return client->Stream(request, sink, stop.get_token()).status(); });
  EXPECT_TRUE(Within(std::chrono::seconds(20), reached));
  stop.request_stop();
  // 1 s is promised; the rest is for a machine that is busy with other things.
  ASSERT_EQ(running.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(running.get().code(), absl::StatusCode::kCancelled);
  static_cast<void>(server);
}

TEST(Client, StopsWhileItWaitsForAnAnswer) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Hang();
  });
  ExpectStops(server, {.url = server.Url("/")}, [&] { return server.connections() > 0; });
}

TEST(Client, StopsInTheMiddleOfABody) {
  std::atomic<bool> said = false;
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(kChunkedHead + RawChunk("abc"));
    said = true;
    connection.Hang();
  });
  ExpectStops(server, {.url = server.Url("/")}, [&] { return said.load(); });
}

// A listener whose queue is full: whoever connects next waits.
class FullListener {
 public:
  FullListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    sockets_.push_back(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(bind(sockets_[0], generic, length), 0);
    EXPECT_EQ(listen(sockets_[0], 0), 0);
    EXPECT_EQ(getsockname(sockets_[0], generic, &length), 0);
    for (int i = 0; i < 4; ++i) {
      sockets_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      connect(sockets_.back(), generic, length);
    }
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  }
  ~FullListener() {
    for (const int fd : sockets_) {
      close(fd);
    }
  }
  std::string url;

 private:
  std::vector<int> sockets_;
};

TEST(Client, StopsWhileItConnects) {
  const FullListener listener;
  const auto client = NewClient();
  std::stop_source stop;
  auto running = std::async(std::launch::async, [&] {
    return client->Send({.url = listener.url}, stop.get_token()).status().code();
  });
  EXPECT_EQ(running.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  stop.request_stop();
  ASSERT_EQ(running.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(running.get(), absl::StatusCode::kCancelled);
}

TEST(Client, AConnectThatIsNotAnsweredIsNoticedByTheInactivityTimeout) {
  const FullListener listener;
  EXPECT_EQ(
      NewClient()->Send({.url = listener.url, .inactivity = Duration(200)}, {}).status().code(),
      absl::StatusCode::kDeadlineExceeded);
}

TEST(Client, DoesNotBeginWhenStoppedAlready) {
  RawServer server([](RawConnection&, int) {});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(
      absl::IsCancelled(NewClient()->Send({.url = server.Url("/")}, stop.get_token()).status()));
  EXPECT_EQ(server.connections(), 0);
}

TEST(Client, ManyCancelsAtAnyMomentLeaveNothingBehind) {
  RawServer server([](RawConnection& connection, int) {
    while (!connection.ReadRequest().empty()) {
      connection.Write(kChunkedHead);
      for (int i = 0; i < 20; ++i) {
        connection.Write(RawChunk(std::string(10'000, 'x')));
      }
      connection.Write(RawChunk(""));
    }
  });
  const auto client = NewClient();
  for (int i = 0; i < 150; ++i) {
    std::stop_source stop;
    Collector sink;
    std::jthread canceller([&, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 20));
      stop.request_stop();
    });
    const auto response = client->Stream({.url = server.Url("/")}, sink, stop.get_token());
    EXPECT_TRUE(response.ok() || absl::IsCancelled(response.status())) << response.status();
  }
}

// Ends the process: with 0 when the only I/O thread still works after answers were abandoned in the
// middle.
[[noreturn]] void AbandonAnswersAndAskAgain() {
  PrepareProcess();
  ::alarm(60);  // a thread that is blocked stays so
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(kChunkedHead);
    for (int i = 0; i < 100; ++i) {
      connection.Write(RawChunk(std::string(100'000, 'x')));
    }
    connection.Write(RawChunk(""));
  });
  const auto client = NewClient();
  for (int i = 0; i < 3; ++i) {
    Collector sink;
    sink.write_status = absl::ResourceExhaustedError("disk full");
    if (client->Stream({.url = server.Url("/")}, sink, {}).ok()) {
      std::_Exit(1);
    }
  }
  Collector sink;
  std::_Exit(client->Stream({.url = server.Url("/")}, sink, {}).ok() ? 0 : 2);
}

TEST(ClientDeathTest, AnswersThatNobodyWantsLeaveAThreadForTheNextRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AbandonAnswersAndAskAgain(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cachewarm::http
