// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
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
using testing::EveryClient;
using testing::FullListener;
using testing::kChunkedHead;
using testing::NewClient;
using testing::Within;

// Runs a request against a server that never answers and stops it once `reached`.
void ExpectStops(Client& client, const Request& request, const std::function<bool()>& reached) {
  std::stop_source stop;
  Collector sink;
  auto running = std::async(
      std::launch::async, [&] { return client.Stream(request, sink, stop.get_token()).status(); });
  EXPECT_TRUE(Within(std::chrono::seconds(20), reached));
  stop.request_stop();
  // The contract is 1 s; the rest allows for a loaded machine.
  ASSERT_EQ(running.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(running.get().code(), absl::StatusCode::kCancelled);
}

TEST_P(EveryClient, StopsWhileWaitingForResponse) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.BlockUntilStop();
  });
  ExpectStops(*NewClient(), {.url = server.Url("/")}, [&] { return server.connections() > 0; });
}

TEST_P(EveryClient, StopsDuringBody) {
  std::atomic<bool> said = false;
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(kChunkedHead + RawChunk("abc"));
    said = true;
    connection.BlockUntilStop();
  });
  ExpectStops(*NewClient(), {.url = server.Url("/")}, [&] { return said.load(); });
}

TEST_P(EveryClient, StopsWhileConnecting) {
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

TEST_P(EveryClient, InactivityTimeoutEndsUnansweredConnect) {
  const FullListener listener;
  EXPECT_EQ(
      NewClient()->Send({.url = listener.url, .inactivity = Duration(200)}, {}).status().code(),
      absl::StatusCode::kDeadlineExceeded);
}

TEST_P(EveryClient, DoesNotStartIfAlreadyStopped) {
  RawServer server([](RawConnection&, int) {});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(
      absl::IsCancelled(NewClient()->Send({.url = server.Url("/")}, stop.get_token()).status()));
  EXPECT_EQ(server.connections(), 0);
}

TEST_P(EveryClient, CancelsAtAnyMomentLeakNothing) {
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

// Exits with 0 if the only I/O thread still works after responses were abandoned.
[[noreturn]] void AbandonAnswersAndAskAgain() {
  PrepareProcess();
  ::alarm(60);  // a blocked thread never returns
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

TEST(ClientDeathTest, AbandonedResponsesDoNotBlockNextRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AbandonAnswersAndAskAgain(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cachewarm::http
