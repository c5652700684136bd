// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/digest.h"

namespace cachewarm {
namespace {

// Returns the algorithm, fetched once. With EVP_sha256(), EVP_DigestInit_ex() would search the
// providers for it again at each call, which takes longer than the hash of a small file.
const EVP_MD* FetchedSha256() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* made) const { EVP_MD_CTX_free(made); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context.get(), FetchedSha256(), nullptr);
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

Digest Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
  unsigned size = 0;
  EVP_DigestFinal_ex(state_->context.get(), raw.data(), &size);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[raw.at(i) >> 4U];
    hex += kDigits[raw.at(i) & 15U];
  }
  return Digest::FromHex(hex);
}

}  // namespace cachewarm
