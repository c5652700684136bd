// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digests.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/base/platform/x86/sha256_blocks.h"

namespace cachewarm {
namespace {

std::string Text(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (char& c : text) {
    seed = seed * 1664525U + 1013904223U;
    c = static_cast<char>(seed >> 24U);
  }
  return text;
}

void ExpectAsOneByOne(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::vector<Digest> digests = DigestsOf(views);
  ASSERT_EQ(digests.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(digests[i], DigestOf(texts[i])) << "text " << i << " of " << texts[i].size();
  }
}

TEST(DigestsOf, TheTestVectorsOfTheStandard) {
  const std::vector<std::string_view> texts = {
      "", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
  const std::vector<Digest> digests = DigestsOf(texts);
  EXPECT_EQ(digests[0].hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digests[1].hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digests[2].hex(), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(DigestsOf, EveryLengthAroundTheBlocksAndTheirPadding) {
  std::vector<std::string> texts;
  for (size_t bytes = 0; bytes < 330; ++bytes) {
    texts.push_back(Text(bytes, static_cast<unsigned>(bytes)));
  }
  ExpectAsOneByOne(texts);
}

TEST(DigestsOf, TextsOfVeryDifferentLengthsSideBySide) {
  ExpectAsOneByOne({});
  ExpectAsOneByOne({Text(100'000, 1)});
  ExpectAsOneByOne({Text(100'000, 1), ""});
  ExpectAsOneByOne({"", Text(100'000, 1), "", "", Text(64, 2), Text(99'968, 3), Text(1, 4)});
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < seed % 9; ++i) {
      texts.push_back(Text((seed * 7919 + i * 104'729) % 5000, seed + i));
    }
    ExpectAsOneByOne(texts);
  }
}

TEST(Sha256Blocks, OneLaneAndTwoGiveTheSame) {
  if (!x86::HasSha256Instructions()) {
    GTEST_SKIP() << "the processor has no SHA instructions";
  }
  const std::string one = Text(640, 1);
  const std::string two = Text(640, 2);
  x86::Sha256State alone[2] = {x86::kSha256Start, x86::kSha256Start};
  x86::HashBlocks({&alone[0], one.data()}, 10);
  x86::HashBlocks({&alone[1], two.data()}, 10);
  x86::Sha256State together[2] = {x86::kSha256Start, x86::kSha256Start};
  x86::HashBlocks({&together[0], one.data()}, {&together[1], two.data()}, 3);
  x86::HashBlocks({&together[0], one.data() + 192}, {&together[1], two.data() + 192}, 7);
  EXPECT_EQ(alone[0], together[0]);
  EXPECT_EQ(alone[1], together[1]);
}

}  // namespace
}  // namespace cachewarm
