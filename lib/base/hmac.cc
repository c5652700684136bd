// SPDX-License-Identifier: Apache-2.0
#include "lib/base/hmac.h"

#include <string>

namespace cachewarm {
namespace {

constexpr size_t kBlockBytes = 64;  // of SHA-256
constexpr char kInnerPad = 0x36;
constexpr char kOuterPad = 0x5c;

std::string FromHex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return bytes;
}

std::string Padded(std::string block, char pad) {
  for (char& c : block) {
    c = static_cast<char>(c ^ pad);
  }
  return block;
}

}  // namespace

Digest HmacOf(std::string_view key, std::string_view bytes) {
  std::string block = key.size() > kBlockBytes ? FromHex(DigestOf(key).hex()) : std::string(key);
  block.resize(kBlockBytes, '\0');
  Sha256 inner;
  inner.Update(Padded(block, kInnerPad));
  inner.Update(bytes);
  Sha256 outer;
  outer.Update(Padded(block, kOuterPad));
  outer.Update(FromHex(inner.Finish().hex()));
  return outer.Finish();
}

}  // namespace cachewarm
