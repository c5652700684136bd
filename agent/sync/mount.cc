// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/mount.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/hex.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kNameBytesMax = 253;  // limit of a DNS subdomain, RFC 1123
constexpr size_t kUidBytesMax = 64;
constexpr std::string_view kColdPrefix = "cold-";
constexpr std::string_view kRetiredPrefix = "retired-";
constexpr size_t kIdDigits = 32;
constexpr size_t kColdDigits = 16;

bool IsLowerAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsDnsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && IsLowerAlnum(text.front()) &&
         IsLowerAlnum(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerAlnum(c) || c == '-' || c == '.';
         });
}

bool IsUid(std::string_view text) {
  return !text.empty() && text.size() <= kUidBytesMax && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z') || c == '-'; });
}

absl::Status Wrong(std::string_view part, std::string_view value, std::string_view expected) {
  return absl::InvalidArgumentError(
      fmt::format("warmup {} \"{}\": expected {}", part, value.substr(0, 80), expected));
}

}  // namespace

absl::Status CheckMount(const Mount& mount) {
  if (!IsDnsName(mount.ns)) {
    return Wrong("namespace", mount.ns, "the name of a namespace");
  }
  if (!IsDnsName(mount.name)) {
    return Wrong("name", mount.name, "the name of a CacheWarmup");
  }
  if (!IsUid(mount.uid)) {
    return Wrong("uid", mount.uid, "at most 64 letters, digits and dashes");
  }
  if (mount.run_as != "image" && RunAsUser(mount.run_as) < 0) {
    return Wrong("runAs", mount.run_as, "\"image\" or \"u\" and a numeric user ID");
  }
  return absl::OkStatus();
}

int64_t RunAsUser(std::string_view run_as) {
  if (run_as.size() < 2 || run_as.front() != 'u') {
    return -1;
  }
  uint32_t user = 0;
  const char* end = run_as.data() + run_as.size();
  const auto [rest, error] = std::from_chars(run_as.data() + 1, end, user);
  const bool has_padding = run_as[1] == '0' && run_as.size() > 2;
  // 2^32 - 1 is no valid user ID: chown(2) takes it as "no change".
  const bool is_number = error == std::errc() && rest == end && !has_padding;
  return is_number && user != UINT32_MAX ? int64_t{user} : -1;
}

std::string GenerationId(const Mount& mount, std::vector<Digest> digests, int renew, int attempt) {
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  std::string text = fmt::format("generation 1\n{}\n{}\n", mount.uid, mount.run_as);
  for (const Digest& digest : digests) {
    text += digest.hex() + "\n";
  }
  if (renew != 0) {
    text += fmt::format("renew {}\n", renew);
  }
  if (attempt != 0) {
    text += fmt::format("attempt {}\n", attempt);
  }
  return DigestOf(text).hex().substr(0, kIdDigits);
}

std::string ColdId(const Mount& mount, int attempt) {
  const std::string text = fmt::format("cold 1\n{}\n{}\n{}\n", mount.uid, mount.run_as, attempt);
  return std::string(kColdPrefix) + DigestOf(text).hex().substr(0, kColdDigits);
}

bool IsColdId(std::string_view id) {
  return id.starts_with(kColdPrefix) && id.size() == kColdPrefix.size() + kColdDigits &&
         IsLowerHex(id.substr(kColdPrefix.size()));
}

bool IsGenerationId(std::string_view id) {
  return IsColdId(id) || (id.size() == kIdDigits && IsLowerHex(id));
}

std::string RetiredName(std::string_view id, int number) {
  return fmt::format("{}{}-{}", kRetiredPrefix, id, number);
}

std::string RetiredGeneration(std::string_view name) {
  if (!name.starts_with(kRetiredPrefix)) {
    return {};
  }
  name.remove_prefix(kRetiredPrefix.size());
  const std::string_view id = name.substr(0, name.rfind('-'));
  return IsGenerationId(id) ? std::string(id) : std::string();
}

}  // namespace cachewarm::agent
