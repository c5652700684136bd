// SPDX-License-Identifier: Apache-2.0
#include "cli/run/transfer_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMegabyte = 1LL << 20;

absl::StatusOr<TransferLimits> Read(const Variables& environment,
                                    const std::vector<std::string>& words = {}) {
  const auto arguments = Arguments::Parse(words, TransferLimitOptionList());
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  return ReadTransferLimits(*arguments, environment);
}

TEST(TransferLimits, DefaultsAllowAnything) {
  const auto limits = Read({});
  EXPECT_EQ(limits->packed_bytes_max, 0);
  EXPECT_EQ(limits->local_free_bytes_min, 64 * kMegabyte);
  EXPECT_EQ(limits->store_free_bytes_min, 0);
  EXPECT_TRUE(CheckAllowed("/srv/cache", *limits).ok());
}

TEST(TransferLimits, VariablesOfB10TransferAreHonoured) {
  const auto limits = Read({{"MAX_CACHE_SIZE_MB", "100"},
                            {"MAX_CONCURRENT_SAVES", "10"},
                            {"MIN_B10FS_SPACE_MB", "500"},
                            {"MIN_LOCAL_SPACE_MB", "7"},
                            {"CLEANUP_LOCK_TIMEOUT_SECONDS", "5"},
                            {"CLEANUP_INCOMPLETE_TIMEOUT_SECONDS", "9"}});
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->packed_bytes_max, 100 * kMegabyte);
  EXPECT_EQ(limits->store_free_bytes_min, 1000 * kMegabyte) << "saves times size";
  EXPECT_EQ(limits->local_free_bytes_min, 7 * kMegabyte);
  EXPECT_EQ(limits->lock_wait, std::chrono::seconds(5));
  EXPECT_EQ(Read({{"MIN_B10FS_SPACE_MB", "500"}})->store_free_bytes_min, 500 * kMegabyte);
}

TEST(TransferLimits, CapBoundsTheSize) {
  EXPECT_EQ(Read({{"MAX_CACHE_SIZE_MB", "100"}, {"MAX_CACHE_SIZE_CAP_MB", "50"}})->packed_bytes_max,
            50 * kMegabyte);
  EXPECT_EQ(Read({{"MAX_CACHE_SIZE_CAP_MB", "50"}})->packed_bytes_max, 50 * kMegabyte);
}

TEST(TransferLimits, FlagsComeFirst) {
  const auto limits = Read({{"MAX_CACHE_SIZE_MB", "100"}, {"MIN_B10FS_SPACE_MB", "500"}},
                           {"--max-bytes", "3", "--min-free-bytes=4"});
  EXPECT_EQ(limits->packed_bytes_max, 3);
  EXPECT_EQ(limits->store_free_bytes_min, 4);
  EXPECT_EQ(limits->local_free_bytes_min, 4);
}

TEST(TransferLimits, MalformedValueIsNamed) {
  for (const std::string name :
       {"MAX_CACHE_SIZE_MB", "MAX_CACHE_SIZE_CAP_MB", "MAX_CONCURRENT_SAVES", "MIN_B10FS_SPACE_MB",
        "MIN_LOCAL_SPACE_MB", "CLEANUP_LOCK_TIMEOUT_SECONDS",
        "CLEANUP_INCOMPLETE_TIMEOUT_SECONDS"}) {
    for (const std::string value : {"many", "-1", "99999999999999"}) {
      const absl::Status status = Read({{name, value}}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << value;
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    }
  }
  for (const std::string flag : {"--max-bytes", "--min-free-bytes"}) {
    const std::vector<std::string> words = {flag, "x"};
    EXPECT_THAT(std::string(Arguments::Parse(words, TransferLimitOptionList()).status().message()),
                HasSubstr(flag + ": \"x\" is not a whole number"));
  }
}

TEST(TransferLimits, DirectoryMustBeOneOfTheAllowedOrBelow) {
  const auto limits = Read({}, {"--allow-dir", "/cache/", "--allow-dir", "/tmp"});
  for (const std::string good : {"/cache", "/cache/a/b", "/tmp/x"}) {
    EXPECT_TRUE(CheckAllowed(good, *limits).ok()) << good;
  }
  for (const std::string bad : {"/cache2", "/", "/var/tmp"}) {
    const absl::Status status = CheckAllowed(bad, *limits);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/cache, /tmp"));
  }
  EXPECT_THAT(Read({{"BASETEN_FS_ENABLED", "1"}, {"HOME", "/home/me"}})->allowed,
              ElementsAre("/tmp", "/cache", "/bdn/cache", "/home/me/.cache"));
}

}  // namespace
}  // namespace cachewarm::cli
