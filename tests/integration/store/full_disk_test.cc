// SPDX-License-Identifier: Apache-2.0
// Full disks: small file systems in memory, for the store and for the node.
#include <cstring>
#include <string>

#include "fmt/format.h"
#include "tests/fakes/small_disk.h"
#include "tests/integration/store/stored_bundles.h"

namespace cachewarm::bundle {
namespace {

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const SmallDisk disk(64); disk.error() != 0) {
      GTEST_SKIP() << "mounting a tmpfs is refused here: " << std::strerror(disk.error());
    }
  }
  const PackedSample old_ = PackTree({{"a", {.content = "old"}}});
  const PackedSample new_ = PackTree(SampleTree());
};

TEST_F(FullDisk, OnStoreKeepsOldBundle) {
  int refused = 0;
  // Increase the free space block by block, so that the disk is full at each write once.
  for (int kibibytes = 0;; kibibytes += 4) {
    const SmallDisk disk(1024);
    LayoutStore store(disk / "store", SystemClock());
    ASSERT_TRUE(WriteSample(store, old_).ok());
    disk.FillUntilFree(kibibytes);
    const int64_t free_before = disk.FreeBytes();
    const absl::Status written = WriteSample(store, new_);
    const std::string when = fmt::format("{} KiB free", kibibytes);
    ExpectWholeBundle(disk / "store", when);
    ExpectNoExtraFiles(disk / "store", when);
    const auto tagged = store.ResolveTag(kRepository, kTag, {});
    ASSERT_TRUE(tagged.ok()) << when << tagged.status();
    if (written.ok()) {
      EXPECT_EQ(*tagged, new_.packed.digest) << when;
      break;
    }
    ++refused;
    EXPECT_TRUE(absl::IsResourceExhausted(written)) << when << written;
    EXPECT_EQ(*tagged, old_.packed.digest) << when;
    // Only whole blobs may remain; the next attempt reuses them.
    EXPECT_LE(free_before - disk.FreeBytes(), 64 << 10) << when;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(refused, 5);
}

TEST_F(FullDisk, OnNodeNeverCompletesExtraction) {
  const TempDir stored;
  LayoutStore store(stored / "store", SystemClock());
  ASSERT_TRUE(WriteSample(store, new_).ok());
  const auto bundle = ReadBundle({store, kRepository}, new_.packed.digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  int refused = 0;
  for (int kibibytes = 4;; kibibytes += 4) {
    const SmallDisk disk(kibibytes);
    const fs::Dir staging = *fs::Dir::Open(disk / "");
    const absl::Status extracted =
        Extract({store, kRepository}, {.bundle = *bundle, .staging = staging}, {});
    if (extracted.ok()) {
      EXPECT_EQ(ReadTree(staging), ExpectedTree(SampleTree()));
      break;
    }
    ++refused;
    EXPECT_TRUE(absl::IsResourceExhausted(extracted)) << kibibytes << extracted;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(refused, 3);
}

}  // namespace
}  // namespace cachewarm::bundle
