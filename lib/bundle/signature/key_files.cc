// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/keys.h"
#include "lib/fs/file.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kFileBytesMax = 64 << 10;

absl::Status Unusable(const std::string& path, const absl::Status& why) {
  return absl::FailedPreconditionError(fmt::format("{}: {}", path, Message(why)));
}

}  // namespace

absl::StatusOr<std::vector<PublicKey>> ReadPublicKeys(const std::string& path) {
  const auto text = fs::ReadNamedFile(path, kFileBytesMax);
  auto keys = text.ok() ? PublicKey::Parse(*text) : text.status();
  if (!keys.ok()) {
    return Unusable(path, keys.status());
  }
  return keys;
}

absl::StatusOr<PrivateKey> ReadPrivateKey(const std::string& path) {
  const auto text = fs::ReadNamedFile(path, kFileBytesMax);
  auto key = text.ok() ? PrivateKey::Parse(*text) : text.status();
  if (!key.ok()) {
    return Unusable(path, key.status());
  }
  return key;
}

}  // namespace cachewarm::bundle
