// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/elf.h"

#include <gtest/gtest.h>

#include "lib/caches/file_check.h"
#include "tests/unit/lib/caches/elf_image.h"

namespace cachewarm::caches {
namespace {

TEST(ParseElfHeader, ReadsBothClassesAndByteOrders) {
  for (const bool is_64_bit : {true, false}) {
    for (const bool big : {true, false}) {
      const std::string image =
          ElfImage({.is_64_bit = is_64_bit, .big_endian = big, .machine = 62, .flags = 0x1234});
      const auto elf = ParseElfHeader(image);
      ASSERT_TRUE(elf.has_value());
      EXPECT_EQ(elf->is_64_bit, is_64_bit);
      EXPECT_EQ(elf->machine, 62);
      EXPECT_EQ(elf->flags, 0x1234U);
      EXPECT_EQ(elf->segments, 1U);
      EXPECT_EQ(elf->sections_end(), image.size());
    }
  }
}

TEST(ParseElfHeader, NeedsExactlyTheHeader) {
  const std::string small = ElfImage({.is_64_bit = false, .os_abi = 65});
  const auto header = ParseElfHeader(small.substr(0, 52));
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->os_abi, 65);
  EXPECT_EQ(header->segments_at, 52U);
  EXPECT_EQ(header->segment_size, 32U);
  EXPECT_EQ(header->section_size, 40U);
  EXPECT_EQ(header->segments_end(), 84U);
  EXPECT_FALSE(ParseElfHeader(small.substr(0, 51)).has_value());
  const std::string large = ElfImage({});
  EXPECT_TRUE(ParseElfHeader(large.substr(0, 64)).has_value());
  EXPECT_EQ(ParseElfHeader(large)->segments_end(), 64U + 56U);
}

TEST(SegmentEnd, ReadsTheLastSegmentOfATable) {
  for (const bool is_64_bit : {true, false}) {
    const std::string image = ElfImage({.is_64_bit = is_64_bit});
    const auto elf = ParseElfHeader(image);
    const std::string table = image.substr(elf->segments_at, elf->segment_size);
    EXPECT_EQ(SegmentEnd(*elf, table, 0), elf->sections_at);
    EXPECT_EQ(SegmentEnd(*elf, table + table, 1), elf->sections_at);
    EXPECT_EQ(SegmentEnd(*elf, (table + table).substr(1), 1), UINT64_MAX);
  }
}

TEST(ParseElfHeader, RefusesOtherFiles) {
  const std::string good = ElfImage({});
  EXPECT_FALSE(ParseElfHeader("").has_value());
  EXPECT_FALSE(ParseElfHeader("\x7f"
                              "ELF")
                   .has_value());
  EXPECT_FALSE(ParseElfHeader(good.substr(0, 63)).has_value());
  EXPECT_FALSE(ParseElfHeader(std::string(64, '\0')).has_value());
  for (const size_t at : {0U, 4U, 5U}) {
    std::string bad = good;
    bad[at] = 9;
    EXPECT_FALSE(ParseElfHeader(bad).has_value()) << at;
  }
}

TEST(SegmentEnd, SaturatesInsteadOfOverflowing) {
  const std::string image = ElfImage({});
  auto elf = ParseElfHeader(image);
  ASSERT_TRUE(elf.has_value());
  EXPECT_EQ(SegmentEnd(*elf, "", 0), UINT64_MAX);
  EXPECT_EQ(SegmentEnd(*elf, std::string(56, '\xff'), 0), UINT64_MAX);
  EXPECT_EQ(SegmentEnd(*elf, std::string(56, '\0'), 1), UINT64_MAX);
  elf->segment_size = 8;
  EXPECT_EQ(SegmentEnd(*elf, std::string(56, '\0'), 0), UINT64_MAX);
  elf->sections_at = UINT64_MAX - 1;
  EXPECT_EQ(elf->sections_end(), UINT64_MAX);
  elf->sections_at = 0;
  EXPECT_EQ(elf->sections_end(), 0U);
}

TEST(CubinArchitecture, ReadsBothLayoutsOfTheFlags) {
  struct Case {
    uint8_t os_abi;
    uint32_t flags;
    const char* architecture;
  };
  // Headers of cubins that NVRTC 12.9.86 and 13.5.37 compiled for these targets. 13.x does not set
  // the bit of the suffix.
  for (const Case& c :
       {Case{51, 0x500550, "sm_80"}, Case{51, 0x5a055a, "sm_90"}, Case{51, 0x5a0d5a, "sm_90a"},
        Case{65, 0x6006402, "sm_100"}, Case{65, 0x600640a, "sm_100a"},
        Case{65, 0x6007802, "sm_120"}, Case{65, 0x6007902, "sm_121"}, Case{65, 0x6005004, "sm_80"},
        Case{65, 0x6005a04, "sm_90"}}) {
    const std::string image = ElfImage({.os_abi = c.os_abi, .machine = 190, .flags = c.flags});
    EXPECT_EQ(CubinArchitecture(image).value_or("none"), c.architecture);
  }
}

TEST(CubinArchitecture, IsUnknownForAnythingElse) {
  EXPECT_FALSE(CubinArchitecture("").has_value());
  EXPECT_FALSE(CubinArchitecture(ElfImage({.machine = 62})).has_value());
  EXPECT_FALSE(CubinArchitecture(ElfImage({.os_abi = 7, .machine = 190, .flags = 90})).has_value());
  EXPECT_FALSE(CubinArchitecture(ElfImage({.os_abi = 51, .machine = 190})).has_value());
}

}  // namespace
}  // namespace cachewarm::caches
