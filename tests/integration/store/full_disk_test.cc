// SPDX-License-Identifier: Apache-2.0
// Real disks that are full: small file systems in memory, on the store's side and on the node's.
#include <sys/mount.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "fmt/format.h"
#include "tests/integration/store/stored_bundles.h"

namespace cachewarm::bundle {
namespace {

// A tmpfs of so many KiB; gone with the object.
class SmallDisk {
 public:
  explicit SmallDisk(int kibibytes)
      : error_(::mount("cachewarm-test", temp_.path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                       fmt::format("size={}k", kibibytes).c_str()) == 0
                   ? 0
                   : errno) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (error_ == 0) {
      EXPECT_EQ(::umount2(temp_.path().c_str(), MNT_DETACH), 0) << std::strerror(errno);
    }
  }
  int error() const { return error_; }
  std::string operator/(const std::string& name) const { return temp_ / name; }
  int64_t FreeBytes() const { return fs::MeasureSpace(temp_.Open())->free_bytes; }
  // So that so many KiB are free.
  void Leave(int kibibytes) const {
    temp_.Write("filler",
                std::string(static_cast<size_t>(FreeBytes() - (int64_t{kibibytes} << 10)), 'x'));
  }

 private:
  const TempDir temp_;
  const int error_;
};

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

TEST_F(FullDisk, OfTheStoreKeepsTheOldBundleAndSaysSo) {
  int refused = 0;
  // From nothing free to room for all, block by block: the disk is full at each write once.
  for (int kibibytes = 0;; kibibytes += 4) {
    const SmallDisk disk(1024);
    LayoutStore store(disk / "store", SystemClock());
    ASSERT_TRUE(WriteSample(store, old_).ok());
    disk.Leave(kibibytes);
    const int64_t free_before = disk.FreeBytes();
    const absl::Status written = WriteSample(store, new_);
    const std::string when = fmt::format("{} KiB free", kibibytes);
    ExpectNothingTorn(disk / "store", when);
    ExpectNoLitter(disk / "store", when);
    const auto tagged = store.ResolveTag(kRepository, kTag, {});
    ASSERT_TRUE(tagged.ok()) << when << tagged.status();
    if (written.ok()) {
      EXPECT_EQ(*tagged, new_.packed.digest) << when;
      break;
    }
    ++refused;
    EXPECT_TRUE(absl::IsResourceExhausted(written)) << when << written;
    EXPECT_EQ(*tagged, old_.packed.digest) << when;
    // Whole blobs may stay, they are found by the next try; nothing else does.
    EXPECT_LE(free_before - disk.FreeBytes(), 64 << 10) << when;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(refused, 5);
}

TEST_F(FullDisk, OfTheNodeNeverMakesATreeThatCountsAsWhole) {
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
