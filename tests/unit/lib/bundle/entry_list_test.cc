// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/entry_list.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/frame_codec.h"
#include "lib/codec/base64.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

const std::string kHex(64, 'a');

std::vector<Entry> Sample() {
  return {{.path = "inductor/ab/cab.py",
           .kind = "torchinductor",
           .bytes = 17,
           .digest = DigestOf("one"),
           .frame = 0},
          {.path = "inductor/ab/\xc3\xbc b.so",
           .kind = "torchinductor",
           .bytes = 0,
           .digest = DigestOf(""),
           .mtime_ns = 1'700'000'000'123'456'789,
           .frame = 3},
          {.path = "triton/x", .kind = "triton", .bytes = 1LL << 40, .digest = DigestOf("x")}};
}

EntryList Packed(std::string_view lines) {
  Buffer packed;
  EXPECT_TRUE(FrameWriter(1).Compress(lines, packed).ok());
  return {.line_bytes = static_cast<int64_t>(lines.size()),
          .packed = codec::EncodeBase64(packed.view())};
}

std::string MessageOf(const EntryList& list, int64_t entries_max = 100) {
  const auto read = ReadEntryList(list, entries_max);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  return std::string(read.status().message());
}

TEST(EntryList, RoundTrips) {
  const auto list = WriteEntryList(Sample());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(*ReadEntryList(*list, 3), Sample());
}

TEST(EntryList, EmptyListRoundTrips) {
  const auto list = WriteEntryList({});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ReadEntryList(*list, 0)->size(), 0U);
}

TEST(EntryList, IsSmallerThanItsLines) {
  std::vector<Entry> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.push_back({.path = fmt::format("triton/{:052}/triton_poi_fused_{}.cubin", i, i),
                       .kind = "triton",
                       .bytes = i,
                       .digest = DigestOf(fmt::format("{}", i)),
                       .frame = i / 100});
  }
  const auto list = WriteEntryList(entries);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_LT(static_cast<int64_t>(list->packed.size()), list->line_bytes / 2);
}

TEST(EntryList, MalformedListErrorNamesLineAndField) {
  struct Case {
    std::string name;
    std::string lines;
    std::string message;
  };
  const std::string good = fmt::format("a\ttriton\t1\t{}\t0\n", kHex);
  const Case cases[] = {
      {"cut", "a\ttriton", "line 1: is truncated"},
      {"one field", "a\n", "line 1: kind: is missing"},
      {"no frame", fmt::format("a\ttriton\t1\t{}\n", kHex), "line 1: frame: is missing"},
      {"absolute", fmt::format("/etc/passwd\ttriton\t1\t{}\t0\n", kHex), "line 1: path"},
      {"parent", fmt::format("{}b/../x\ttriton\t1\t{}\t0\n", good, kHex), "line 2: path"},
      {"empty path", fmt::format("\ttriton\t1\t{}\t0\n", kHex), "path: expected 1 to"},
      {"long path", fmt::format("{}\tk\t1\t{}\t0\n", std::string(1025, 'p'), kHex), "path"},
      {"not UTF-8", fmt::format("\xff\xfe\ttriton\t1\t{}\t0\n", kHex), "path"},
      {"no kind", fmt::format("a\t\t1\t{}\t0\n", kHex), "kind"},
      {"odd kind", fmt::format("a\tx\x01\t1\t{}\t0\n", kHex), "kind: is not UTF-8 or holds"},
      {"negative", fmt::format("a\ttriton\t-1\t{}\t0\n", kHex), "size: expected an integer"},
      {"text", fmt::format("a\ttriton\t1x\t{}\t0\n", kHex), "size: expected an integer"},
      {"plus", fmt::format("a\ttriton\t+1\t{}\t0\n", kHex), "size: expected an integer"},
      {"too large", fmt::format("a\ttriton\t9999999999999999999\t{}\t0\n", kHex), "size"},
      {"so large that sums overflow", fmt::format("a\ttriton\t1099511627777\t{}\t0\n", kHex),
       "size: expected an integer, 0 to 1099511627776"},
      {"digest", fmt::format("a\ttriton\t1\t{}\t0\n", std::string(64, 'G')), "sha256: expected"},
      {"short digest", "a\ttriton\t1\tabc\t0\n", "sha256: expected"},
      {"frame", fmt::format("a\ttriton\t1\t{}\t-1\n", kHex), "frame: expected an integer"},
      {"mtime", fmt::format("a\ttriton\t1\t{}\t0\t-5\n", kHex), "mtimeNanoseconds: expected"},
      {"no mtime", fmt::format("a\ttriton\t1\t{}\t0\t\n", kHex), "mtimeNanoseconds: expected"},
      {"eight fields", fmt::format("a\ttriton\t1\t{}\t0\t5\tx\n", kHex), "must be the last field"},
      {"order", fmt::format("b\ttriton\t1\t{}\t0\n{}", kHex, good), "line 2: path: must sort"},
      {"twice", good + good, "line 2: path: must sort after"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(MessageOf(Packed(c.lines)), HasSubstr(c.message)) << c.name;
  }
}

TEST(EntryList, EnforcesCountAndSizeLimits) {
  const auto list = WriteEntryList(Sample());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(MessageOf(*list, 2), HasSubstr("more than 2 lines"));
  EXPECT_THAT(MessageOf({.line_bytes = kEntryLinesBytesMax + 1, .packed = list->packed}),
              HasSubstr("lineBytes"));
  EXPECT_THAT(MessageOf({.line_bytes = -1, .packed = list->packed}), HasSubstr("lineBytes"));
}

TEST(EntryList, RejectsWrongLineBytes) {
  const auto list = WriteEntryList(Sample());
  ASSERT_TRUE(list.ok()) << list.status();
  for (const int64_t bytes : {list->line_bytes - 1, list->line_bytes + 1, int64_t{0}}) {
    MessageOf({.line_bytes = bytes, .packed = list->packed});
  }
}

TEST(EntryList, RejectsMalformedPacking) {
  EXPECT_THAT(MessageOf({.line_bytes = 4, .packed = "???"}), HasSubstr("base64"));
  MessageOf({.line_bytes = 4, .packed = codec::EncodeBase64("not zstd at all")});
  const EntryList good = Packed("a\n");
  const std::string twice = *codec::DecodeBase64(good.packed) + *codec::DecodeBase64(good.packed);
  MessageOf({.line_bytes = 2, .packed = codec::EncodeBase64(twice)});
}

TEST(EntryList, RejectsKindWithControlCharacters) {
  std::vector<Entry> entries = Sample();
  entries[0].kind = "a\tb";
  EXPECT_TRUE(absl::IsInvalidArgument(WriteEntryList(entries).status()));
}

}  // namespace
}  // namespace cachewarm::bundle
