// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/artifact.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/base64.h"
#include "lib/megacache/platform/boost/crc32.h"

namespace cachewarm::megacache {
namespace {

using ::testing::HasSubstr;

std::string Integer(uint64_t value, int bytes = 8) {
  std::string text;
  for (int i = bytes; i-- > 0;) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}
std::string Bytes(const std::string& bytes) {
  return Integer(bytes.size()) + bytes;
}
std::string String(const std::string& text) {
  return Bytes(codec::EncodeBase64(text));
}
// Prepends the checksum to the rest of an artifact.
std::string Checked(const std::string& rest) {
  return Integer(Crc32(rest), 4) + rest;
}
std::string Version1(const std::string& groups) {
  return Checked(Integer(1) + groups);
}

std::vector<std::string> Words(const std::vector<Entry>& entries) {
  std::vector<std::string> words;
  for (const Entry& entry : entries) {
    words.push_back(entry.type + " " + entry.key + " " + std::string(entry.content));
  }
  return words;
}

TEST(Artifact, BytesOfTorchAreRead) {
  // torch 2.15: AppendingByteSerializer with one group of two entries, printed by Python.
  const std::string bytes =
      Version1(String("pgo") + Integer(2) + String("job1:None:") + Bytes("\x80\x04.") +
               String("j\xc3\xb6"
                      "b") +
               Bytes(""));
  const auto entries = Parse(bytes, {});
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(Words(*entries), (std::vector<std::string>{"pgo job1:None: \x80\x04.",
                                                       "pgo j\xc3\xb6"
                                                       "b "}));
}

TEST(Artifact, ChecksumIsThatOfZlib) {
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926U) << "check value of CRC-32/ISO-HDLC";
  EXPECT_EQ(Crc32(""), 0U);
}

TEST(Artifact, WrittenEntriesAreReadAgain) {
  const std::vector<Entry> entries = {{"inductor", "fab1", "one"},
                                      {"aot_autograd", "aab1", std::string_view("\0two", 4)},
                                      {"inductor", "fab2", ""}};
  const std::string bytes = Write(entries);
  const auto read = Parse(bytes, {});
  ASSERT_TRUE(read.ok()) << read.status();
  // The entries of a type are in one group: torch keeps only the last group of each type.
  EXPECT_EQ(Words(*read), (std::vector<std::string>{"inductor fab1 one", "inductor fab2 ",
                                                    std::string("aot_autograd aab1 \0two", 22)}));
  EXPECT_EQ(Write(*read), bytes);
  EXPECT_EQ(Parse(Write({}), {})->size(), 0U);
}

TEST(Artifact, RepeatedGroupsAreAllRead) {
  const std::string group = String("inductor") + Integer(1) + String("fab1");
  const std::string bytes = Version1(group + Bytes("one") + group + Bytes("two"));
  const auto entries = Parse(bytes, {});
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(Words(*entries), (std::vector<std::string>{"inductor fab1 one", "inductor fab1 two"}));
}

struct Refused {
  const char* name;
  std::string bytes;
  absl::StatusCode code;
  const char* message;
};

class RefusedArtifact : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedArtifact, SaysWhyAndWhatToDo) {
  const auto entries =
      Parse(GetParam().bytes, {.entries_max = 3, .type_bytes_max = 16, .key_bytes_max = 8});
  EXPECT_EQ(entries.status().code(), GetParam().code) << entries.status();
  EXPECT_THAT(std::string(entries.status().message()), HasSubstr(GetParam().message));
}

constexpr auto kDamaged = absl::StatusCode::kDataLoss;
constexpr auto kForeign = absl::StatusCode::kInvalidArgument;

INSTANTIATE_TEST_SUITE_P(
    All, RefusedArtifact,
    ::testing::Values(
        Refused{"empty", "", kDamaged, "0 bytes are too few"},
        Refused{"short", std::string(11, 'x'), kDamaged, "11 bytes are too few"},
        Refused{"checksum", Integer(7, 4) + Integer(1), kDamaged, "checksum does not match"},
        Refused{"pickle", "\x80\x04\x95 0123456789", kForeign, "a pickle of protocol 4"},
        Refused{"no_checksum", Integer(1) + String("inductor") + Integer(0), kForeign,
                "before 2.8"},
        Refused{"version_2", Checked(Integer(2)), kForeign,
                "format version 2 is unknown; this cachewarm reads version 1"},
        Refused{"version_huge", Checked(Integer(~0ULL)), kForeign,
                "format version 18446744073709551615"},
        Refused{"half_a_length", Version1("1234"), kDamaged, "ends within the type of a group"},
        Refused{"length_beyond_the_end", Version1(Integer(9) + "abcdefgh"), kDamaged,
                "ends within the type of a group"},
        Refused{"length_of_all_ones", Version1(Integer(~0ULL) + "abcdefgh"), kDamaged,
                "ends within the type of a group"},
        Refused{"no_count", Version1(String("inductor")), kDamaged, "the size of a group"},
        Refused{"count_of_all_ones", Version1(String("inductor") + Integer(~0ULL)), kDamaged,
                "too short for 18446744073709551615 entries of type inductor"},
        Refused{"content_missing",
                Version1(String("inductor") + Integer(1) + String("fab1") + Integer(0x1000)),
                kDamaged, "the content of entry 0 of type inductor"},
        Refused{"key_not_base64",
                Version1(String("inductor") + Integer(1) + Bytes("!!!!") + Bytes("")), kForeign,
                "the key of entry 0 of type inductor is not base64"},
        Refused{"key_not_utf8",
                Version1(String("inductor") + Integer(1) + String("\xff") + Bytes("")), kForeign,
                "UTF-8"},
        Refused{"key_too_long",
                Version1(String("inductor") + Integer(1) + String("123456789") + Bytes("")),
                kForeign, "at most 8 bytes"},
        Refused{
            "key_far_too_long",
            Version1(String("inductor") + Integer(1) + String(std::string(99, 'a')) + Bytes("")),
            kForeign, "is longer than 8 bytes"},
        Refused{"type_too_long", Version1(String(std::string(40, 't')) + Integer(0)), kForeign,
                "the type of a group is longer than 16 bytes"},
        Refused{"too_many_entries",
                Version1(String("pgo") + Integer(4) + String("a") + Bytes("") + String("b") +
                         Bytes("") + String("c") + Bytes("") + String("d") + Bytes("")),
                kForeign, "more than 3 entries"}),
    [](const auto& each) { return each.param.name; });

TEST(Artifact, EveryTruncationIsRefused) {
  const std::string bytes = Write({{"inductor", "fab1", "one"}, {"pgo", "job", "two"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Parse(bytes.substr(0, size), {}).ok()) << size;
    // As if the checksum were that of the truncated bytes. A cut between two groups stays unseen.
    if (size > 12 && size < bytes.size() - 1) {
      const auto cut = Parse(Checked(bytes.substr(4, size - 4)), {});
      EXPECT_TRUE(!cut.ok() || cut->size() == 1) << size;
    }
  }
}

}  // namespace
}  // namespace cachewarm::megacache
