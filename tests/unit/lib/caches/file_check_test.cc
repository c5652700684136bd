// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/file_check.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "lib/caches/cache_table.h"
#include "tests/unit/lib/caches/elf_image.h"

namespace cachewarm::caches {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const std::string& path, const std::string& bytes) {
  return CheckWhole(CacheTable::AllPresets().Classify(path), path, bytes.size(),
                    [&bytes](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
                      return offset >= bytes.size() ? "" : bytes.substr(offset, size);
                    });
}

std::string OwnBinary() {
  std::string bytes(std::filesystem::file_size("/proc/self/exe"), '\0');
  std::ifstream file("/proc/self/exe", std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TEST(CheckWhole, PassesACompleteSharedObject) {
  EXPECT_TRUE(Check("inductor/ab/cab.main.so", ElfImage({})).ok());
  EXPECT_TRUE(Check("inductor/ab/cab.main.so", ElfImage({.is_64_bit = false})).ok());
  EXPECT_TRUE(Check("inductor/ab/cab.main.so", ElfImage({.big_endian = true})).ok());
}

TEST(CheckWhole, PassesTheOutputOfARealLinker) {
  EXPECT_TRUE(Check("inductor/ab/cab.main.so", OwnBinary()).ok());
}

TEST(CheckWhole, RefusesASharedObjectTruncatedAnywhere) {
  const std::string whole = ElfImage({});
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::Status status = Check("inductor/ab/cab.main.so", whole.substr(0, size));
    EXPECT_TRUE(absl::IsDataLoss(status)) << size;
  }
}

TEST(CheckWhole, RefusesATruncatedRealBinary) {
  const std::string whole = OwnBinary();
  ASSERT_GT(whole.size(), 100'000U);
  for (const size_t size :
       {size_t{0}, size_t{100}, size_t{20'000}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_TRUE(absl::IsDataLoss(Check("inductor/ab/c.main.so", whole.substr(0, size)))) << size;
  }
}

TEST(CheckWhole, FindsASegmentBeyondTheEndOfAStrippedFile) {
  std::string stripped = ElfImage({});
  stripped.replace(40, 8, std::string(8, '\0'));
  EXPECT_TRUE(Check("inductor/ab/c.so", stripped).ok());
  const absl::Status status = Check("inductor/ab/c.so", stripped.substr(0, 200));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("segment 0 ends at"));
}

TEST(CheckWhole, RefusesEmptyFilesThatWouldCrashEveryStart) {
  for (const char* path : {"inductor/ab/c.main.so", "inductor/ab/c.py", "inductor/fxgraph/a/b/c",
                           "inductor/aotautograd/a/c", "jax/a-cache", "triton/A/k.cubin",
                           "triton/A/__grp__k.json", "torch_extensions/x/a.o"}) {
    EXPECT_TRUE(absl::IsDataLoss(Check(path, ""))) << path;
  }
}

TEST(CheckWhole, PassesEmptyMarkersAndLogs) {
  EXPECT_TRUE(Check("inductor/ab/c.so.load_ok", "").ok());
  EXPECT_TRUE(Check("torch_extensions/x/.ninja_deps", "").ok());
}

TEST(CheckWhole, RefusesASharedObjectWithoutAnElfHeader) {
  EXPECT_TRUE(absl::IsDataLoss(Check("inductor/ab/c.so", std::string(5000, '\0'))));
  EXPECT_TRUE(absl::IsDataLoss(Check("triton/A/launcher.so", "not an object")));
}

TEST(CheckWhole, PassesKernelsOfOtherFormats) {
  EXPECT_TRUE(Check("cupy/0011.cubin", "0123456789abcdef hash before the image").ok());
  EXPECT_TRUE(Check("torch_extensions/x/bitcode.o", "BC\xC0\xDE").ok());
}

TEST(CheckWhole, RefusesATruncatedCubin) {
  const std::string cubin = ElfImage({.os_abi = 51, .machine = 190, .flags = 90});
  EXPECT_TRUE(Check("triton/A/k.cubin", cubin).ok());
  EXPECT_TRUE(absl::IsDataLoss(Check("triton/A/k.cubin", cubin.substr(0, cubin.size() - 1))));
}

TEST(CheckWhole, DoesNotReadText) {
  const absl::Status status = CheckWhole(
      CacheTable::AllPresets().Classify("inductor/ab/c.py"), "inductor/ab/c.py", 10,
      [](uint64_t, size_t) -> absl::StatusOr<std::string> { return absl::InternalError("read"); });
  EXPECT_TRUE(status.ok());
}

TEST(CheckWhole, ReturnsReadErrors) {
  const absl::Status status =
      CheckWhole(CacheTable::AllPresets().Classify("inductor/ab/c.so"), "inductor/ab/c.so", 100,
                 [](uint64_t, size_t) -> absl::StatusOr<std::string> {
                   return absl::UnavailableError("disk");
                 });
  EXPECT_TRUE(absl::IsUnavailable(status));
}

TEST(CheckWhole, SurvivesEveryFlippedByteOfAHeader) {
  const std::string whole = ElfImage({});
  for (size_t at = 0; at < 120; ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string bad = whole;
      bad[at] = value;
      Check("inductor/ab/c.so", bad).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace cachewarm::caches
