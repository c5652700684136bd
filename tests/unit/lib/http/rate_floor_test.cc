// SPDX-License-Identifier: Apache-2.0
// Servers that are not idle but too slow.
#include "lib/http/rate_floor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lib/http/client.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/http/client_ends.h"

namespace cachewarm::http {
namespace {

using fakes::RawChunk;
using fakes::RawConnection;
using fakes::RawServer;
using std::chrono::seconds;
using testing::Collector;
using testing::kChunkedHead;
using testing::Within;

constexpr RateFloorLimits kLimits{.bytes_min = 60 << 10, .window = seconds(60)};

TEST(RateFloorTest, JudgesEachWindowOfWaiting) {
  RateFloor floor(kLimits);
  EXPECT_TRUE(floor.Add(seconds(59), 0)) << "the window is not over";
  EXPECT_TRUE(floor.Add(seconds(1), 60 << 10));
  EXPECT_TRUE(floor.Add(seconds(59), 1000));
  EXPECT_FALSE(floor.Add(seconds(1), 1000)) << "bytes of an earlier window do not count";
}

TEST(RateFloorTest, WithoutALimitEveryRateIsAccepted) {
  EXPECT_TRUE(RateFloor({}).Add(std::chrono::hours(24), 0));
}

// Serves a body of `pieces` chunks of `bytes` bytes, each 10 s after the one before.
class SlowServer {
 public:
  SlowServer(int pieces, size_t bytes)
      : server_([this, pieces, bytes](RawConnection& connection, int) {
          connection.ReadRequest();
          connection.Write(kChunkedHead);
          for (int i = 0; i < pieces && !done; ++i) {
            connection.Write(RawChunk(std::string(bytes, 'x')));
            const size_t sent = bytes * static_cast<size_t>(i + 1);
            Within(seconds(20), [&] {
              const std::lock_guard lock(sink.mutex);
              return done || sink.taken >= sent;
            });
            // The client already waits for the next piece. A piece whose wait begins only
            // after the clock moved does not count as waited for.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            clock.Advance(seconds(10));
          }
          connection.Write("0\r\n\r\n");
          connection.BlockUntilStop();
        }) {}

  absl::Status Get() {
    const auto client = MakeClient({.rate_floor = kLimits, .clock = &clock});
    const absl::Status status = (*client)->Stream({.url = server_.Url("/")}, sink, {}).status();
    done = true;
    return status;
  }

  fakes::FakeClock clock;
  Collector sink;
  std::atomic<bool> done = false;

 private:
  RawServer server_;
};

TEST(RateFloorTest, TricklingServerIsLeft) {
  SlowServer server(1000, 1);
  const absl::Status status = server.Get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("fewer than 61440 bytes were transferred in 1m"),
            std::string_view::npos)
      << status;
  EXPECT_LT(server.sink.taken, 1000U);
}

TEST(RateFloorTest, SlowButSteadyServerIsNotLeft) {
  SlowServer server(30, 20'000);
  const absl::Status status = server.Get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(server.sink.taken, 30U * 20'000);
}

}  // namespace
}  // namespace cachewarm::http
