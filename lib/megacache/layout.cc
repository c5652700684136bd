// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/layout.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

namespace cachewarm::megacache {
namespace {

constexpr std::string_view kInductor = "inductor";
constexpr std::string_view kAotAutograd = "aot_autograd";
constexpr std::string_view kAutotune = "autotune";
constexpr std::string_view kPgo = "pgo";
constexpr std::string_view kPrecompile = "precompile";

constexpr size_t kKeyBytesMin = 4;
constexpr size_t kKeyBytesMax = 128;
constexpr size_t kContentNameBytes = 51;
constexpr std::string_view kBestConfig = ".best_config";
constexpr std::string_view kCodeState = "code_state_";
constexpr std::string_view kPickle = ".pkl";
constexpr std::string_view kReplaced = "<>:\"/\\|?*";
// A file name has at most 255 bytes. This leaves space for "code_state_" and ".pkl" around the key,
// and for ".lock", which torch adds.
constexpr size_t kPgoKeyBytesMax = 230;

bool IsPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// True for a key that is safe as the name of a directory. The keys that torch writes consist of
// base32 or hexadecimal digits.
bool IsKey(std::string_view key, size_t bytes_min = kKeyBytesMin) {
  return key.size() >= bytes_min && key.size() <= kKeyBytesMax &&
         std::all_of(key.begin(), key.end(), IsPlain);
}

bool IsPgoKey(std::string_view key) {
  return !key.empty() && key.size() <= kPgoKeyBytesMax && !HasAsciiControl(key);
}

bool IsBestConfig(std::string_view key) {
  const size_t slash = key.find('/');
  return slash != std::string_view::npos && key.ends_with(kBestConfig) &&
         IsKey(key.substr(0, slash), 1) &&
         IsKey(key.substr(slash + 1, key.size() - slash - 1 - kBestConfig.size()));
}

absl::Status BadKey(const Entry& entry, std::string_view expected) {
  std::string shown;
  for (const char c : entry.key.substr(0, kKeyBytesMax)) {
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return absl::InvalidArgumentError(
      fmt::format("the key \"{}\" of an entry of type {} is not {}; torch writes no such artifact",
                  shown, entry.type, expected));
}

std::vector<std::string_view> Parts(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t from = 0; from <= path.size();) {
    const size_t slash = std::min(path.find('/', from), path.size());
    parts.push_back(path.substr(from, slash - from));
    from = slash + 1;
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::string> PathOf(const Entry& entry) {
  constexpr std::string_view kExpected = "4 to 128 letters, digits, \"_\" and \"-\"";
  const bool is_key = IsKey(entry.key);
  if (entry.type == kInductor) {
    return is_key
               ? absl::StatusOr<std::string>(fmt::format("fxgraph/{}/{}/{}", entry.key.substr(1, 2),
                                                         entry.key, ContentName(entry.content)))
               : BadKey(entry, kExpected);
  }
  if (entry.type == kAotAutograd) {
    return is_key ? absl::StatusOr<std::string>(
                        fmt::format("aotautograd/{}/{}", entry.key, ContentName(entry.content)))
                  : BadKey(entry, kExpected);
  }
  if (entry.type == kPrecompile) {
    return is_key ? absl::StatusOr<std::string>(fmt::format("dynamo/{}/entry", entry.key))
                  : BadKey(entry, kExpected);
  }
  if (entry.type == kAutotune) {
    return IsBestConfig(entry.key) ? absl::StatusOr<std::string>(entry.key)
                                   : BadKey(entry, "<directory>/<hash>.best_config");
  }
  if (entry.type == kPgo) {
    if (!IsPgoKey(entry.key)) {
      return BadKey(entry,
                    fmt::format("1 to {} bytes without control characters", kPgoKeyBytesMax));
    }
    std::string name = entry.key;
    std::replace_if(
        name.begin(), name.end(),
        [](char c) { return kReplaced.find(c) != std::string_view::npos; }, '_');
    return fmt::format("dynamo/{}{}{}", kCodeState, name, kPickle);
  }
  return absl::InvalidArgumentError(fmt::format(
      "entries of type \"{}\" are unknown; this cachewarm knows inductor, aot_autograd, "
      "autotune, pgo and precompile: use a newer cachewarm",
      entry.type));
}

std::optional<EntryName> NameOf(std::string_view path) {
  const std::vector<std::string_view> parts = Parts(path);
  const std::string_view last = parts.back();
  if (parts.size() == 4 && parts[0] == "fxgraph" && IsKey(parts[2]) && !last.empty() &&
      parts[1] == parts[2].substr(1, 2) && last.front() != '.') {
    return EntryName{std::string(kInductor), std::string(parts[2]), true};
  }
  if (parts.size() == 3 && parts[0] == "aotautograd" && IsKey(parts[1]) && !last.empty() &&
      last.front() != '.') {
    return EntryName{std::string(kAotAutograd), std::string(parts[1]), last != "entry"};
  }
  if (parts.size() == 3 && parts[0] == "dynamo" && IsKey(parts[1]) && last == "entry") {
    return EntryName{std::string(kPrecompile), std::string(parts[1])};
  }
  if (parts.size() == 2 && parts[0] == "dynamo" && last.starts_with(kCodeState) &&
      last.ends_with(kPickle) && last.size() > kCodeState.size() + kPickle.size()) {
    const std::string_view key =
        last.substr(kCodeState.size(), last.size() - kCodeState.size() - kPickle.size());
    return IsPgoKey(key) ? std::optional(EntryName{std::string(kPgo), std::string(key)})
                         : std::nullopt;
  }
  if (IsBestConfig(path)) {
    return EntryName{std::string(kAutotune), std::string(path)};
  }
  return std::nullopt;
}

std::string ContentName(std::string_view content) {
  constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr unsigned kBitsOfDigit = 5;
  constexpr unsigned kBitsOfHex = 4;
  const std::string hex = DigestOf(content).hex();
  std::string name;
  unsigned value = 0;
  unsigned bits = 0;
  for (const char c : hex) {
    const auto digit = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    value = value << kBitsOfHex | digit;
    bits += kBitsOfHex;
    if (bits >= kBitsOfDigit) {
      bits -= kBitsOfDigit;
      name.push_back(kDigits[value >> bits & 31U]);
      value &= (1U << bits) - 1;
    }
  }
  name.resize(kContentNameBytes);
  return name;
}

}  // namespace cachewarm::megacache
