// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/disk_space.h"

#include <gtest/gtest.h>

#include <vector>

namespace cachewarm::agent {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
constexpr DiskShares kDefaults{.limit = 10, .reserve_bytes = 12, .reserve_inodes = 6};

TEST(ReserveOf, IsTheLargerOfOneGibibyteAndTheShare) {
  EXPECT_EQ(ReserveOf(kDefaults, {.bytes = 100 * kGi, .inodes = 1000}),
            (DiskAmount{.bytes = kGi * 12, .inodes = 60}));
  EXPECT_EQ(ReserveOf(kDefaults, {.bytes = 2 * kGi, .inodes = 1000}).bytes, kGi);
}

TEST(ReserveOf, IsSmallIfSwitchedOff) {
  EXPECT_EQ(ReserveOf({}, {.bytes = 100 * kGi, .inodes = 1000}),
            (DiskAmount{.bytes = int64_t{64} << 20, .inodes = 0}));
}

struct SpaceCase {
  const char* name;
  DiskLimits disk;
  DiskAmount need;
  std::string_view reason;  // empty: fits
  DiskAmount lacking;
};

std::vector<SpaceCase> SpaceCases() {
  return {
      {"exactly the limit", {.limit_bytes = 100, .used_bytes = 60}, {.bytes = 40}, "", {}},
      {"above the limit",
       {.limit_bytes = 100, .used_bytes = 60},
       {.bytes = 41},
       "OverByteLimit",
       {.bytes = 1}},
      {"no limit", {.used_bytes = 60}, {.bytes = 1'000'000}, "", {}},
      {"exactly the reserve", {.free_bytes = 100, .reserve = {.bytes = 90}}, {.bytes = 10}, "", {}},
      {"into the reserve",
       {.free_bytes = 100, .reserve = {.bytes = 90}},
       {.bytes = 15},
       "DiskFull",
       {.bytes = 5}},
      {"inodes into the reserve",
       {.free_inodes = 100, .reserve = {.inodes = 90}},
       {.bytes = 1, .inodes = 12},
       "DiskFull",
       {.inodes = 2}},
      {"limit and reserve",
       {.limit_bytes = 100, .used_bytes = 99, .free_bytes = 0, .reserve = {.bytes = 50}},
       {.bytes = 2},
       "OverByteLimit",
       {.bytes = 52}},
  };
}

TEST(CheckSpace, ComparesTheNeedWithLimitAndReserve) {
  for (const SpaceCase& each : SpaceCases()) {
    const auto refusal = CheckSpace(each.disk, each.need);
    EXPECT_EQ(refusal.has_value() ? refusal->reason : "", each.reason) << each.name;
    EXPECT_EQ(Lacking(each.disk, each.need), each.lacking) << each.name;
  }
}

TEST(CheckSpace, SaysUsedLimitAndRemedy) {
  const auto over = CheckSpace({.limit_bytes = 100, .used_bytes = 60}, {.bytes = 41});
  EXPECT_NE(over->message.find("41 bytes needed, 60 in use, byteLimit is 100: raise byteLimit"),
            std::string::npos)
      << over->message;
  const auto full =
      CheckSpace({.used_bytes = 7, .free_bytes = 100, .reserve = {.bytes = 90}}, {.bytes = 15});
  EXPECT_NE(full->message.find("100 bytes free, 7 used by caches: delete files"), std::string::npos)
      << full->message;
  const auto inodes = CheckSpace({.free_inodes = 5, .reserve = {.inodes = 90}}, {.inodes = 15});
  EXPECT_NE(inodes->message.find("15 inodes needed"), std::string::npos) << inodes->message;
}

}  // namespace
}  // namespace cachewarm::agent
