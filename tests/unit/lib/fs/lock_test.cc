// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::fs {
namespace {

TEST(Lock, ExcludesOthersUntilReleased) {
  const TempDir temp;
  const Dir dir = temp.Open();
  std::optional<Fd> first = *Lock(dir, "lock", {.clock = SystemClock()});
  const auto second = Lock(dir, "lock", {.clock = SystemClock(), .timeout = Duration{30}});
  EXPECT_TRUE(absl::IsDeadlineExceeded(second.status())) << second.status();
  first.reset();
  EXPECT_TRUE(Lock(dir, "lock", {.clock = SystemClock()}).ok());
}

TEST(TryLock, OfAPathIsExclusiveAndCreatesNothing) {
  const TempDir temp;
  const Dir dir = temp.Open();
  EXPECT_TRUE(absl::IsNotFound(TryLock(dir, "file").status()));
  EXPECT_FALSE(*dir.Exists("file"));
  temp.Write("file", "x");
  ASSERT_TRUE(dir.SetMode("file", 0444).ok());
  auto first = TryLock(dir, "file");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->has_value());
  const auto second = TryLock(dir, "file");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->has_value());
  first->reset();
  EXPECT_TRUE(TryLock(dir, "file")->has_value());
}

TEST(Lock, WaitEndsWithStop) {
  const TempDir temp;
  const Dir dir = temp.Open();
  const auto held = Lock(dir, "lock", {.clock = SystemClock()});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(
      Lock(dir, "lock", {.clock = SystemClock(), .stop = stop.get_token()}).status()));
}

TEST(Lock, EndsWithItsProcess) {
  const TempDir temp;
  const Dir dir = temp.Open();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = Lock(dir, "lock", {.clock = SystemClock()});
    WriteFileAtomic(dir, "held", "", 0644).IgnoreError();
    ::pause();
    ::_exit(0);
  }
  while (!*dir.Exists("held")) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(Lock(dir, "lock", {.clock = SystemClock(), .timeout = Duration{20}}).ok());
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(Lock(dir, "lock", {.clock = SystemClock()}).ok());
}

TEST(Lock, SerializesThreads) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "count", "0", 0644).ok());
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&dir] {
        for (int i = 0; i < 10; ++i) {
          const auto held = Lock(dir, "lock", {.clock = SystemClock()});
          const int count = std::stoi(*ReadFile(dir, "count", 10));
          EXPECT_TRUE(WriteFileAtomic(dir, "count", std::to_string(count + 1), 0644).ok());
        }
      });
    }
  }
  EXPECT_EQ(*ReadFile(dir, "count", 10), "40");
}

TEST(Lock, DoesNotFollowALink) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(ReplaceLink(dir, "lock", "/tmp/cachewarm-lock-elsewhere").ok());
  EXPECT_FALSE(Lock(dir, "lock", {.clock = SystemClock()}).ok());
  EXPECT_NE(::access("/tmp/cachewarm-lock-elsewhere", F_OK), 0);
}

}  // namespace
}  // namespace cachewarm::fs
