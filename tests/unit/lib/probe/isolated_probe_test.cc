// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/isolated_probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lib/gpu/probe.h"
#include "lib/probe/driver_state.h"
#include "lib/probe/node_probe.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::probe {
namespace {

using fingerprint::NodeFacts;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

NodeFacts Facts() {
  return {.gpu_type = "nvidia/h200/sm_90",
          .gpu_kinds = {"nvidia/h200/sm_90"},
          .gpu_memory_bytes = uint64_t{143'771} << 20U,
          .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
          .driver_version = "570.133.20",
          .device_count = 8,
          .cpu = {.architecture = "x86_64",
                  .vendor = "amd",
                  .family = "25",
                  .model = "17",
                  .flags = {"avx", "avx2"}},
          .gpu_source = "nvml",
          .cpu_source = "proc"};
}

[[noreturn]] void Hang() {
  while (true) {
    ::pause();
  }
}

TEST(IsolatedProbe, ReturnsTheFactsOfTheChild) {
  IsolatedProbe probe([] { return Facts(); }, seconds(60));
  for (int i = 0; i < 2; ++i) {
    const auto facts = probe.Run();
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(*facts, Facts());
  }
}

TEST(IsolatedProbe, AnswerOfTheChildIsBounded) {
  IsolatedProbe probe(
      [] {
        NodeFacts facts = Facts();
        facts.driver_version = std::string(300U << 10U, 'v');
        return facts;
      },
      seconds(60));
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = probe.Run().status();
    EXPECT_TRUE(absl::IsInternal(status)) << status.code();
    EXPECT_THAT(std::string(status.message()), HasSubstr("exceeds 262144 bytes"));
  }
}

TEST(IsolatedProbe, ReturnsTheErrorOfTheChild) {
  IsolatedProbe probe(
      []() -> absl::StatusOr<NodeFacts> {
        return absl::InvalidArgumentError("facts.yaml: gpuType: bad\nsecond line");
      },
      seconds(60));
  EXPECT_EQ(probe.Run().status(),
            absl::InvalidArgumentError("facts.yaml: gpuType: bad\nsecond line"));
}

TEST(IsolatedProbe, HangingDriverEndsAtTheDeadline) {
  IsolatedProbe probe([]() -> absl::StatusOr<NodeFacts> { Hang(); }, milliseconds(100));
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = probe.Run().status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("did not answer within 100 ms"));
  }
}

// The real probe with a library whose scenario a file beside it decides.
class ReplacedLibraryTest : public ::testing::Test {
 protected:
  ReplacedLibraryTest() {
    temp_.Write("cpuinfo", "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\nflags : avx\n");
  }

  // Installs a new file of the library, as an upgrade of the driver does.
  void Install(const std::string& scenario) {
    temp_.Write("libnvidia-ml.so.1.scenario", scenario);
    std::filesystem::copy(FAKE_NVML, temp_ / "next");
    std::filesystem::rename(temp_ / "next", temp_ / "libnvidia-ml.so.1");
  }
  std::string State() { return DriverState("", {temp_ / "libnvidia-ml.so.1"}); }

  TempDir temp_;
  IsolatedProbe probe_{[this] {
                         return ProbeNode({.proc_root = temp_.path(), .facts_file = {}},
                                          *gpu::MakeCudaProbe({temp_.path()}));
                       },
                       seconds(10)};
};

TEST_F(ReplacedLibraryTest, NextQuerySeesTheNewDriver) {
  Install("l4");
  EXPECT_EQ(probe_.Run()->gpu_type, "nvidia/l4/sm_89");
  const std::string before = State();
  Install("b200x8");
  EXPECT_NE(State(), before);
  const auto next = probe_.Run();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->gpu_type, "nvidia/b200/sm_100");
  EXPECT_EQ(next->driver_version, "570.133.20");
  Install("a100-mig");
  EXPECT_EQ(probe_.Run()->gpu_type, "nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb");
  Install("mig-mixed");
  EXPECT_TRUE(fingerprint::HasMixedKinds(*probe_.Run()));
}

TEST_F(ReplacedLibraryTest, CrashOfTheLibraryIsAnError) {
  Install("crash");
  EXPECT_TRUE(absl::IsUnavailable(probe_.Run().status()));
  Install("h200x8");
  EXPECT_EQ(probe_.Run()->gpu_type, "nvidia/h200/sm_90");
}

TEST_F(ReplacedLibraryTest, HangOfTheLibraryEndsAtTheDeadline) {
  Install("hang");
  IsolatedProbe impatient(
      [this] {
        return ProbeNode({.proc_root = temp_.path(), .facts_file = {}},
                         *gpu::MakeCudaProbe({temp_.path()}));
      },
      milliseconds(300));
  EXPECT_THAT(std::string(impatient.Run().status().message()), HasSubstr("did not answer"));
  Install("h200x8");
  EXPECT_EQ(probe_.Run()->gpu_type, "nvidia/h200/sm_90");
}

TEST(IsolatedProbe, CrashingDriverIsAnError) {
  IsolatedProbe probe(
      []() -> absl::StatusOr<NodeFacts> {
        ::signal(SIGABRT, SIG_DFL);
        ::raise(SIGABRT);
        return Facts();
      },
      seconds(60));
  const absl::Status status = probe.Run().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 6"));
}

TEST(IsolatedProbe, DriverThatExitsIsAnError) {
  IsolatedProbe probe([]() -> absl::StatusOr<NodeFacts> { ::_exit(0); }, seconds(60));
  EXPECT_THAT(std::string(probe.Run().status().message()), HasSubstr("without an answer"));
}

TEST(IsolatedProbe, StopEndsTheQuery) {
  IsolatedProbe probe([]() -> absl::StatusOr<NodeFacts> { Hang(); }, seconds(600));
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stop.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(probe.Run(stop.get_token()).status()));
}

// A child that hangs in the kernel must not keep the lock of the root directory.
TEST(IsolatedProbe, ChildInheritsNoFileOfThisProcess) {
  const TempDir temp;
  const std::string path = temp / "lock";
  const int held = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  const std::string in_child = temp / "started";
  IsolatedProbe probe(
      [&]() -> absl::StatusOr<NodeFacts> {
        ::close(::open(in_child.c_str(), O_WRONLY | O_CREAT, 0600));
        Hang();
      },
      seconds(600));
  std::stop_source stop;
  const std::jthread running([&] { static_cast<void>(probe.Run(stop.get_token())); });
  while (::access(in_child.c_str(), F_OK) != 0) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  ::close(held);
  const int next = ::open(path.c_str(), O_RDWR);
  EXPECT_EQ(::flock(next, LOCK_EX | LOCK_NB), 0) << "the child holds the lock";
  ::close(next);
  stop.request_stop();
}

}  // namespace
}  // namespace cachewarm::probe
