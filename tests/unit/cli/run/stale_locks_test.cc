// SPDX-License-Identifier: Apache-2.0
#include "cli/run/stale_locks.h"

#include <filesystem>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kTorch[] = "torch_extensions/ops/lock";
constexpr char kAiter[] = "aiter/build/lock_module_norm";
constexpr char kHeldByTheKernel[] = "sglang/cute_aot/ab/00.lock";  // the kernel releases it

class StaleLocks : public ::testing::Test {
 protected:
  StaleLocks() {
    for (const char* path : {kTorch, kAiter, kHeldByTheKernel, "torch_extensions/ops/ops.so"}) {
      temp_.Write(std::string("cache/") + path, "x");
    }
  }
  bool Exists(const char* path) {
    return std::filesystem::exists(temp_ / ("cache/" + std::string(path)));
  }
  absl::StatusOr<DirectoryUse> Begin() {
    return BeginUse(*fs::Dir::Open(temp_ / "cache"), SystemClock());
  }

  TempDir temp_;
};

TEST_F(StaleLocks, OnlyUserOfTheDirectoryRemovesThem) {
  const auto use = Begin();
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_THAT(use->removed, UnorderedElementsAre(kTorch, kAiter));
  EXPECT_FALSE(Exists(kTorch));
  EXPECT_FALSE(Exists(kAiter));
  EXPECT_TRUE(Exists(kHeldByTheKernel));
  EXPECT_TRUE(Exists("torch_extensions/ops/ops.so"));
}

TEST_F(StaleLocks, LockStaysWhileAnotherCommandUsesTheDirectory) {
  std::optional<DirectoryUse> first = *Begin();
  temp_.Write(std::string("cache/") + kTorch, "");
  const auto second = Begin();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->removed, IsEmpty());
  EXPECT_TRUE(Exists(kTorch)) << "the first command may hold it";
  first.reset();
  EXPECT_THAT(Begin()->removed, IsEmpty()) << "the second command may hold it";
}

TEST_F(StaleLocks, LinkAtThePlaceOfALockIsNotFollowed) {
  std::filesystem::remove(temp_ / ("cache/" + std::string(kTorch)));
  temp_.Write("outside", "x");
  std::filesystem::create_symlink(temp_ / "outside", temp_ / ("cache/" + std::string(kTorch)));
  EXPECT_THAT(Begin()->removed, UnorderedElementsAre(kAiter));
  EXPECT_TRUE(std::filesystem::exists(temp_ / "outside"));
}

}  // namespace
}  // namespace cachewarm::cli
