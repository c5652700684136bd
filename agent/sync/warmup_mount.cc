// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/warmup_mount.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cachewarm::agent {
namespace {

constexpr size_t kNameBytesMax = 253;  // limit of a DNS subdomain, RFC 1123
constexpr size_t kUidBytesMax = 64;

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

}  // namespace cachewarm::agent
