// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/tar.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/base/digest.h"
#include "lib/bundle/ustar_header.h"

namespace cachewarm::bundle {
namespace {

// Most headers are written without libarchive, but the bytes of a bundle, and so its digest, must
// not depend on that. The sum is that of libarchive 3.6.2 for the same members.
TEST(TarHeader, HasTheBytesOfLibarchive) {
  constexpr int64_t kSecond = 1'000'000'000;
  Sha256 headers;
  const auto add = [&headers](const Member& member) {
    const auto header = TarHeader(member);
    ASSERT_TRUE(header.ok()) << header.status();
    headers.Update(*header);
  };
  for (const size_t length : {1U, 50U, 98U, 99U, 100U, 101U}) {
    const std::string path(length, 'p');
    for (const int64_t seconds :
         {int64_t{0}, int64_t{1}, int64_t{1'700'000'000}, int64_t{INT32_MAX},
          int64_t{INT32_MAX} + 1, int64_t{8589934591}}) {
      for (const int64_t bytes :
           {int64_t{0}, int64_t{1}, int64_t{511}, int64_t{8589934591}, int64_t{8589934592}}) {
        add({.path = path,
             .type = MemberType::kFile,
             .bytes = bytes,
             .mtime_ns = seconds * kSecond,
             .mode = 0444});
      }
      add({.path = path,
           .type = MemberType::kDirectory,
           .mtime_ns = seconds * kSecond,
           .mode = 0755});
      add({.path = path,
           .type = MemberType::kHardLink,
           .link = std::string(length, 'l'),
           .mtime_ns = seconds * kSecond,
           .mode = 0444});
    }
  }
  EXPECT_EQ(headers.Finish().hex(),
            "57baa9c18c58c2371350c8c708144093055a7fac751cd5e5d7cc92bf0b95dae5");
}

// Returns `length` bytes with a '/' after every `part` bytes, but not at the end.
std::string PathOf(size_t length, size_t part) {
  std::string path(length, 'p');
  for (size_t at = part; at + 1 < length; at += part + 1) {
    path[at] = '/';
  }
  return path;
}

// The paths of vLLM's caches are longer than the name field. The sum is that of libarchive 3.6.2.
TEST(TarHeader, DividesLongPathsLikeLibarchive) {
  Sha256 headers;
  size_t plain = 0;
  const auto add = [&](const Member& member) {
    const auto header = TarHeader(member);
    ASSERT_TRUE(header.ok()) << header.status();
    headers.Update(*header);
    plain += UstarHeader(member).has_value() ? 1U : 0U;
    EXPECT_EQ(UstarHeader(member).has_value(), header->size() == size_t{kTarBlockBytes})
        << member.path;
  };
  for (size_t length = 90; length < 270; ++length) {
    for (const size_t part : {1U, 40U, 97U, 100U, 101U, 154U, 155U, 156U}) {
      const std::string path = PathOf(length, part);
      add({.path = path, .type = MemberType::kFile, .mode = 0444});
      add({.path = path, .type = MemberType::kDirectory, .mode = 0755});
      add({.path = "l", .type = MemberType::kHardLink, .link = path, .mode = 0444});
    }
  }
  EXPECT_EQ(plain, 1806U);
  EXPECT_EQ(headers.Finish().hex(),
            "56bd93545c9b20a8703bca67e41984bcc3023c42193a288272d4fc5a4e51e14f");
}

TEST(TarHeader, IsReadBack) {
  for (const std::string& path :
       {std::string("a/b"), PathOf(250, 97), std::string(150, 'n'), std::string("\xc3\xa9")}) {
    for (const int64_t mtime_ns :
         {int64_t{0}, int64_t{1'700'000'000'000'000'000}, int64_t{1'700'000'000'000'000'001}}) {
      const auto header =
          TarHeader({.path = path, .type = MemberType::kFile, .mtime_ns = mtime_ns, .mode = 0444});
      ASSERT_TRUE(header.ok());
      TarReader reader(*header);
      const auto member = reader.Next();
      ASSERT_TRUE(member.ok() && member->has_value()) << member.status();
      EXPECT_EQ((*member)->path, path);
      EXPECT_EQ((*member)->mtime_ns, mtime_ns);
      EXPECT_EQ((*member)->mode, 0444U);
      EXPECT_EQ((*member)->type, MemberType::kFile);
    }
  }
}

}  // namespace
}  // namespace cachewarm::bundle
