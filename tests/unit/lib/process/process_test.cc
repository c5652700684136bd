// SPDX-License-Identifier: Apache-2.0
#include "lib/process/process.h"

#include <gtest/gtest.h>
#include <linux/ioprio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/fakes/memory_log.h"

namespace cachewarm::process {
namespace {

// Returns at once on a stop request, and after a minute in any case.
void AwaitStop(std::stop_token stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, std::chrono::minutes(1), [] { return false; });
}

class ProcessTest : public ::testing::Test {
 protected:
  // Restores the signal mask and the dispositions of this process.
  ProcessTest() {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
    pipe_ = std::signal(SIGPIPE, SIG_DFL);
    file_size_ = std::signal(SIGXFSZ, SIG_DFL);
    signals_ = BlockSignals();
  }
  ~ProcessTest() override {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    std::signal(SIGPIPE, pipe_);
    std::signal(SIGXFSZ, file_size_);
  }

  fakes::MemoryLog log_;
  sigset_t signals_{};

 private:
  sigset_t mask_{};
  void (*pipe_)(int) = nullptr;
  void (*file_size_)(int) = nullptr;
};

TEST_F(ProcessTest, ReturnsStatusOfWork) {
  EXPECT_TRUE(
      RunUntilSignal(signals_, log_, [](std::stop_token) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(absl::IsUnavailable(RunUntilSignal(signals_, log_, [](std::stop_token) {
    return absl::UnavailableError("the port is taken");
  })));
}

TEST_F(ProcessTest, EachTerminationSignalStopsTheWork) {
  for (const int signal : {SIGTERM, SIGINT}) {
    bool stopped = false;
    const absl::Status ended = RunUntilSignal(signals_, log_, [&](std::stop_token stop) {
      ::kill(::getpid(), signal);
      AwaitStop(stop);
      stopped = stop.stop_requested();
      return absl::OkStatus();
    });
    EXPECT_TRUE(ended.ok()) << ended;
    EXPECT_TRUE(stopped) << signal;
  }
}

TEST_F(ProcessTest, AbandonsUnstoppableWorkWithSuccess) {
  EXPECT_EXIT(RunUntilSignal(signals_, log_,
                             [](std::stop_token) {
                               ::kill(::getpid(), SIGTERM);
                               AwaitStop({});
                               return absl::OkStatus();
                             })
                  .IgnoreError(),
              ::testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(ProcessTest, ClosedPeerIsAWriteError) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

TEST(Process, UnsetVariableDiffersFromEmpty) {
  ::setenv("CACHEWARM_TEST_EMPTY", "", 1);
  EXPECT_EQ(Environment("CACHEWARM_TEST_EMPTY"), "");
  EXPECT_EQ(Environment("CACHEWARM_TEST_NOT_SET"), std::nullopt);
  ::unsetenv("CACHEWARM_TEST_EMPTY");
}

settings::Sources SourcesOf(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  return SettingSources(static_cast<int>(pointers.size()), pointers.data(), "1.2");
}

TEST(Process, ArgumentsExcludeProgramName) {
  const settings::Sources sources = SourcesOf({"/usr/bin/agent", "--root", "/x"});
  EXPECT_EQ(sources.arguments, (std::vector<std::string>{"--root", "/x"}));
  EXPECT_FALSE(sources.host_name.empty());
  EXPECT_EQ(sources.version, "1.2");
}

TEST(Process, ReadsBoundedConfigurationFile) {
  const auto read = SourcesOf({"agent"}).read_file;
  const std::string path = ::testing::TempDir() + "/process_test.yaml";
  const auto write = [&](size_t bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
  };
  write(1U << 20U);
  EXPECT_EQ(read(path)->size(), 1U << 20U);
  write((1U << 20U) + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(read(path).status()));
  std::filesystem::remove(path);
  const absl::Status missing = read(path).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_NE(missing.message().find(path), std::string::npos) << missing;
}

TEST(LowerThreadPriority, AffectsTheCallingThreadOnly) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  int nice = 0;
  long io = 0;
  std::thread([&] {
    LowerThreadPriority();
    nice = ::getpriority(PRIO_PROCESS, 0);
    io = ::syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
  }).join();
  EXPECT_EQ(nice, 19);
  EXPECT_EQ(IOPRIO_PRIO_CLASS(io), static_cast<long>(IOPRIO_CLASS_IDLE));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
}

using std::chrono::milliseconds;

// Runs work that never stops in a child process and returns the time from SIGTERM to its exit: the
// shortest of three runs, because load adds to it.
milliseconds TimeUntilTheEnd(const sigset_t& signals, Log& log, const StopLimit& limit) {
  milliseconds best = milliseconds::max();
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      RunUntilSignal(
          signals, log,
          [](std::stop_token) {
            ::kill(::getpid(), SIGTERM);
            AwaitStop({});
            return absl::OkStatus();
          },
          limit)
          .IgnoreError();
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    best = std::min(
        best, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin));
  }
  return best;
}

TEST_F(ProcessTest, WorkThatDoesNotStopEndsWithinTwoSecondsOfTheSignal) {
  const milliseconds took = TimeUntilTheEnd(signals_, log_, [] { return kStopWithin; });
  EXPECT_GE(took, kStopWithin);
  EXPECT_LE(took, milliseconds(2000));
}

TEST_F(ProcessTest, WorkThatDrainsAServerHasTheTimeForIt) {
  const absl::Status ended = RunUntilSignal(
      signals_, log_,
      [](std::stop_token stop) {
        ::kill(::getpid(), SIGTERM);
        AwaitStop(stop);
        std::this_thread::sleep_for(milliseconds(100));
        return absl::UnavailableError("drained");
      },
      [] { return milliseconds(60'000); });
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_LT(TimeUntilTheEnd(signals_, log_, [] { return milliseconds(10); }), kStopWithin);
}

}  // namespace
}  // namespace cachewarm::process
