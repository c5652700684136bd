// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/limited/limited_store.h"

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Duration Slept(const ImpatientClock& clock) {
  Duration all{0};
  for (const Duration slept : clock.slept()) {
    all += slept;
  }
  return all;
}

TEST(Bandwidth, KeepsRateForPiecesOfAnySize) {
  constexpr int64_t kRate = 10'000'000;
  for (const int64_t piece : {int64_t{100}, int64_t{4096}, int64_t{1} << 20, kRate * 2}) {
    const ImpatientClock clock;
    Bandwidth bandwidth(kRate, clock);
    const int64_t pieces = 4 * kRate / piece;
    for (int64_t i = 0; i < pieces; ++i) {
      ASSERT_TRUE(bandwidth.Acquire(piece, {}).ok());
    }
    // Bytes of four seconds, less the burst of 250 ms.
    EXPECT_GE(Slept(clock), milliseconds(3600)) << piece;
    EXPECT_LE(Slept(clock), milliseconds(3760)) << piece;
  }
}

TEST(Bandwidth, PauseAllowsOneBurst) {
  const ImpatientClock clock;
  Bandwidth bandwidth(1'000'000, clock);
  EXPECT_TRUE(bandwidth.Acquire(250'000, {}).ok());
  EXPECT_TRUE(clock.slept().empty());
  EXPECT_TRUE(bandwidth.Acquire(1'000'000, {}).ok());
  EXPECT_EQ(Slept(clock), seconds(1));
  ASSERT_TRUE(SleepFor(clock, seconds(3600), {}));
  EXPECT_TRUE(bandwidth.Acquire(1'250'000, {}).ok());
  EXPECT_EQ(Slept(clock), seconds(3602));
}

TEST(Bandwidth, LowRateAllowsSmallPieceAtOnce) {
  const ImpatientClock clock;
  Bandwidth bandwidth(1024, clock);
  EXPECT_TRUE(bandwidth.Acquire(64 << 10, {}).ok());
  EXPECT_TRUE(clock.slept().empty());
}

TEST(Bandwidth, IsSharedByAllCallers) {
  const ImpatientClock clock;
  Bandwidth bandwidth(1'000'000, clock);
  std::vector<std::jthread> transfers;
  for (int i = 0; i < 4; ++i) {
    transfers.emplace_back([&] {
      for (int piece = 0; piece < 100; ++piece) {
        EXPECT_TRUE(bandwidth.Acquire(10'000, {}).ok());
      }
    });
  }
  transfers.clear();
  EXPECT_GE(clock.Monotonic().time_since_epoch(), seconds(1000) + milliseconds(3700));
}

TEST(Bandwidth, StopEndsTheWait) {
  const fakes::FakeClock clock;
  Bandwidth bandwidth(1000, clock);
  std::stop_source stop;
  absl::Status taken;
  {
    const std::jthread taker([&] { taken = bandwidth.Acquire(1'000'000, stop.get_token()); });
    ASSERT_TRUE(clock.AwaitWaiters(1));
    stop.request_stop();
  }
  EXPECT_TRUE(absl::IsCancelled(taken)) << taken;
}

TEST(Semaphore, AdmitsNextCallerWhenOneLeaves) {
  Semaphore semaphore(2);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const auto permit = semaphore.Acquire({});
        ASSERT_TRUE(permit.ok());
        const int now = ++inside;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_LE(most, 2);
  EXPECT_EQ(inside, 0);
}

TEST(Semaphore, StopEndsTheWait) {
  Semaphore semaphore(1);
  const auto first = semaphore.Acquire({});
  std::stop_source stop;
  absl::Status second;
  {
    const std::jthread waiter([&] { second = semaphore.Acquire(stop.get_token()).status(); });
    stop.request_stop();
  }
  EXPECT_TRUE(absl::IsCancelled(second)) << second;
}

TEST(Semaphore, ZeroMeansUnlimited) {
  Semaphore semaphore(0);
  std::vector<Semaphore::Permit> held;
  for (int i = 0; i < 1000; ++i) {
    held.push_back(*semaphore.Acquire({}));
  }
}

TEST(LimitedStore, LimitsReadRate) {
  const ImpatientClock clock;
  LimitedStore store(std::make_unique<MemoryStore>(),
                     {.downloads = std::make_shared<Bandwidth>(1'000'000, clock)});
  const std::string bytes = Noise(3'250'000, 1);
  const auto blob = WriteSmallBlob(store, "team/llama", bytes, {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_TRUE(clock.slept().empty());
  EXPECT_TRUE(*ReadSmallBlob(store, "team/llama", *blob, 4'000'000, {}) == bytes);
  EXPECT_GE(Slept(clock), milliseconds(2990));
  EXPECT_LE(Slept(clock), seconds(3));
}

TEST(LimitedStore, CopyWithinOneStoreDoesNotDeadlock) {
  LimitedStore store(std::make_unique<MemoryStore>(), {.connections = 1});
  const std::string bytes = Noise(1'000'000, 2);
  const auto blob = WriteSmallBlob(store, "team/one", bytes, {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  const auto upload = store.StartBlob("team/two", {});
  ASSERT_TRUE(
      store.ReadBlob("team/one", {.digest = blob->digest, .bytes = blob->bytes}, **upload, {})
          .ok());
  EXPECT_TRUE((*upload)->Commit().ok());
  EXPECT_TRUE(*store.HasBlob("team/two", blob->digest, {}));
}

TEST(LimitedStore, LimitsConcurrentCalls) {
  auto mem = std::make_unique<MemoryStore>();
  std::atomic<int> inside = 0;
  std::atomic<bool> too_many = false;
  class Slow : public Sink {
   public:
    explicit Slow(std::atomic<int>& inside, std::atomic<bool>& too_many)
        : inside_(inside), too_many_(too_many) {}
    absl::Status Write(std::string_view) override {
      too_many_ = too_many_ || ++inside_ > 2;
      std::this_thread::yield();
      --inside_;
      return absl::OkStatus();
    }

   private:
    std::atomic<int>& inside_;
    std::atomic<bool>& too_many_;
  };
  LimitedStore store(std::move(mem), {.connections = 2});
  const auto blob = WriteSmallBlob(store, "team/llama", "content", {});
  std::vector<std::jthread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        Slow sink(inside, too_many);
        EXPECT_TRUE(
            store.ReadBlob("team/llama", {.digest = blob->digest, .bytes = 7}, sink, {}).ok());
      }
    });
  }
  readers.clear();
  EXPECT_FALSE(too_many);
}

}  // namespace
}  // namespace cachewarm::bundle
