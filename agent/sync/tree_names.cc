// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/tree_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/hex.h"

namespace cachewarm::agent {
namespace {

constexpr std::string_view kColdPrefix = "cold-";
constexpr std::string_view kRetiredPrefix = "retired-";
constexpr size_t kIdDigits = 32;
constexpr size_t kColdDigits = 16;

}  // namespace

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
