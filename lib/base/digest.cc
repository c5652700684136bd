// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digest.h"

#include "fmt/format.h"
#include "lib/base/hex.h"

namespace cachewarm {
namespace {

constexpr std::string_view kPrefix = "sha256:";

bool IsHexDigest(std::string_view hex) {
  return hex.size() == 64 && IsLowerHex(hex);
}

}  // namespace

absl::StatusOr<Digest> Digest::Parse(std::string_view text) {
  if (!text.starts_with(kPrefix) || !IsHexDigest(text.substr(kPrefix.size()))) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a digest: expected sha256: and 64 lower-case hex digits",
                    text.substr(0, 80)));
  }
  return FromHex(text.substr(kPrefix.size()));
}

Digest Digest::FromHex(std::string_view hex) {
  Digest digest;
  digest.hex_ = std::string(hex);
  return digest;
}

Digest DigestOf(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

}  // namespace cachewarm
