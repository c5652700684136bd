// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/key_tag.h"

#include "fmt/format.h"
#include "lib/base/hex.h"

namespace cachewarm::bundle {
namespace {

constexpr std::string_view kPrefix = "k-";
constexpr size_t kKeyDigits = 64;
constexpr size_t kTimeBytes = 16;     // "20261126T063000Z"
constexpr size_t kDigestDigits = 12;  // as Digest::Short()

std::optional<WallTime> ParseCompactTime(std::string_view text) {
  if (text.size() != kTimeBytes) {
    return std::nullopt;
  }
  const auto time = ParseTime(fmt::format("{}-{}-{}T{}:{}:{}", text.substr(0, 4), text.substr(4, 2),
                                          text.substr(6, 2), text.substr(9, 2), text.substr(11, 2),
                                          text.substr(13)));
  return time.ok() && text[8] == 'T' ? std::optional<WallTime>(*time) : std::nullopt;
}

}  // namespace

std::optional<KeyTag> ParseKeyTag(std::string_view tag) {
  constexpr size_t kKeyEnd = kPrefix.size() + kKeyDigits;
  if (!tag.starts_with(kPrefix) || tag.size() < kKeyEnd) {
    return std::nullopt;
  }
  KeyTag parsed{.key = std::string(tag.substr(kPrefix.size(), kKeyDigits)),
                .published = std::nullopt,
                .digest = ""};
  if (!IsLowerHex(parsed.key)) {
    return std::nullopt;
  }
  const std::string_view rest = tag.substr(kKeyEnd);
  if (rest.empty()) {
    return parsed;
  }
  // "-TIME-DIGEST"
  if (rest.size() != kTimeBytes + kDigestDigits + 2 || rest[0] != '-' ||
      rest[kTimeBytes + 1] != '-' || !IsLowerHex(rest.substr(kTimeBytes + 2))) {
    return std::nullopt;
  }
  parsed.published = ParseCompactTime(rest.substr(1, kTimeBytes));
  parsed.digest = std::string(rest.substr(kTimeBytes + 2));
  return parsed.published.has_value() ? std::optional<KeyTag>(parsed) : std::nullopt;
}

std::string KeyTagOf(std::string_view key) {
  return fmt::format("{}{}", kPrefix, key);
}

std::string DatedTag(std::string_view key_tag, const Digest& digest, WallTime published) {
  std::string time = FormatTime(published);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}-{}", key_tag, time, digest.Short());
}

}  // namespace cachewarm::bundle
