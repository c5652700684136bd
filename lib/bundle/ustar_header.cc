// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/ustar_header.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "fmt/format.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kNanosecondsInASecond = 1'000'000'000;
constexpr int64_t kSizeMax = (int64_t{8} << 30) - 1;  // 11 octal digits
constexpr int64_t kSecondsMax = INT32_MAX - 1;  // libarchive adds a pax header for the maximum
constexpr size_t kNameBytesMax = 100;
constexpr size_t kPrefixBytesMax = 155;

bool HasOnlyAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// A path as the two fields of a header; `prefix` is empty if the path fits into `name`.
struct UstarPath {
  std::string_view prefix;
  std::string_view name;
};

// Divides a path at the first '/' after which the rest fits into the name, as libarchive does.
std::optional<UstarPath> DividePath(std::string_view path) {
  if (path.size() <= kNameBytesMax) {
    return UstarPath{.prefix = {}, .name = path};
  }
  size_t slash = path.find('/', path.size() - kNameBytesMax - 1);
  if (slash == 0) {
    slash = path.find('/', 1);  // the prefix must not be empty
  }
  if (slash == std::string_view::npos || slash + 1 == path.size() || slash > kPrefixBytesMax) {
    return std::nullopt;
  }
  return UstarPath{.prefix = path.substr(0, slash), .name = path.substr(slash + 1)};
}

bool FitsIntoBlock(const Member& member) {
  const bool is_file = member.type == MemberType::kFile;
  const int64_t seconds = member.mtime_ns / kNanosecondsInASecond;
  return (is_file || member.type == MemberType::kDirectory ||
          member.type == MemberType::kHardLink) &&
         member.link.size() <= kNameBytesMax && HasOnlyAscii(member.path) &&
         HasOnlyAscii(member.link) && member.bytes >= 0 &&
         member.bytes <= (is_file ? kSizeMax : 0) && member.mtime_ns % kNanosecondsInASecond == 0 &&
         seconds >= 0 && seconds <= kSecondsMax;
}

}  // namespace

std::optional<std::string> UstarHeader(const Member& member) {
  const bool is_directory = member.type == MemberType::kDirectory;
  const bool is_link = member.type == MemberType::kHardLink;
  const std::string full = is_directory ? member.path + "/" : member.path;
  const std::optional<UstarPath> path = DividePath(full);
  if (!path.has_value() || !FitsIntoBlock(member)) {
    return std::nullopt;
  }
  std::string header(size_t{kTarBlockBytes}, '\0');
  const auto put = [&header](size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, path->name);
  put(100, fmt::format("{:06o} ", member.mode));
  put(108, "000000 ");  // owner
  put(116, "000000 ");  // group
  put(124, fmt::format("{:011o} {:011o} ", member.bytes, member.mtime_ns / kNanosecondsInASecond));
  put(148, "        ");  // the checksum is computed with blanks in its place
  put(156, is_directory ? "5" : is_link ? "1" : "0");
  put(157, is_link ? member.link : "");
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  put(329, "000000 ");  // device numbers
  put(337, "000000 ");
  put(345, path->prefix);
  const auto sum = std::accumulate(header.begin(), header.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  put(148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return header;
}

}  // namespace cachewarm::bundle
