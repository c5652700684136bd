// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/signature/keys.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <optional>

#include "fmt/format.h"
#include "lib/base/platform/openssl/handles.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"

namespace cachewarm::bundle {
namespace {

constexpr char kCurve[] = "prime256v1";
constexpr size_t kKeysMax = 16;
constexpr size_t kPemBytesMax = 64U << 10U;
constexpr char kHowToMakeKey[] =
    "make a key with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem";

using openssl::Bio;
using openssl::Deleter;
using openssl::Key;
using openssl::Memory;
using Context = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Fails for encrypted keys instead of prompting for a password.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*unused*/) {
  return -1;
}

bool IsP256(const EVP_PKEY* key) {
  std::array<char, 64> curve{};
  size_t size = 0;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &size) == 1 &&
         std::string_view(curve.data(), size) == kCurve;
}

std::string HintOf(const EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) {
    return "";
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned hash_size = 0;
  EVP_Digest(der, static_cast<size_t>(size), hash.data(), &hash_size, EVP_sha256(), nullptr);
  OPENSSL_free(der);
  return codec::EncodeBase64({reinterpret_cast<const char*>(hash.data()), hash_size});
}

absl::Status KeyError(std::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(std::string(what));
}

// One block of a PEM text, from "-----BEGIN name-----" to "-----END name-----".
struct Block {
  std::string name;
  std::string der;
};

std::optional<Block> NextBlock(BIO* bio) {
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* der = nullptr;
  long size = 0;
  if (PEM_read_bio(bio, &name, &header, &der, &size) != 1) {
    return std::nullopt;
  }
  Block block{.name = name, .der = {reinterpret_cast<const char*>(der), static_cast<size_t>(size)}};
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_free(der);
  return block;
}

absl::Status CheckSize(std::string_view pem) {
  return pem.size() <= kPemBytesMax
             ? absl::OkStatus()
             : KeyError(fmt::format("is larger than {} bytes", kPemBytesMax));
}

}  // namespace

struct PublicKey::State {
  Key key;
};

PublicKey::PublicKey(std::shared_ptr<const State> state, std::string hint)
    : state_(std::move(state)), hint_(std::move(hint)) {}

absl::StatusOr<std::vector<PublicKey>> PublicKey::Parse(std::string_view pem) {
  CW_RETURN_IF_ERROR(CheckSize(pem));
  const Bio bio = Memory(pem);
  std::vector<PublicKey> keys;
  while (std::optional<Block> block = NextBlock(bio.get())) {
    if (block->name != PEM_STRING_PUBLIC) {
      return KeyError(
          fmt::format("holds a PEM \"{}\"; expected \"PUBLIC KEY\" (openssl pkey -pubout "
                      "writes one)",
                      block->name));
    }
    const unsigned char* der = Bytes(block->der);
    Key key(d2i_PUBKEY(nullptr, &der, static_cast<long>(block->der.size())));
    if (key == nullptr || !IsP256(key.get())) {
      return KeyError(
          "holds a key that is not ECDSA on P-256; make an ECDSA P-256 key with cosign "
          "generate-key-pair");
    }
    if (keys.size() == kKeysMax) {
      return KeyError(fmt::format("holds more than {} keys", kKeysMax));
    }
    std::string hint = HintOf(key.get());
    keys.push_back(
        PublicKey(std::make_shared<const State>(State{std::move(key)}), std::move(hint)));
  }
  // The loop ends at the end of the text, which leaves the error NO_START_LINE, or at an incomplete
  // block, which leaves a different one.
  if (keys.empty() || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return KeyError(
        "holds no complete PEM \"PUBLIC KEY\"; cosign generate-key-pair writes one to cosign.pub");
  }
  ERR_clear_error();
  return keys;
}

bool PublicKey::HasSigned(std::string_view message, std::string_view signature) const {
  const Context context(EVP_MD_CTX_new());
  EVP_PKEY* key = state_->key.get();
  const bool good = EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
                    EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                                     Bytes(message), message.size()) == 1;
  ERR_clear_error();
  return good;
}

absl::StatusOr<PrivateKey> PrivateKey::Parse(std::string_view pem) {
  CW_RETURN_IF_ERROR(CheckSize(pem));
  if (pem.find("BEGIN ENCRYPTED SIGSTORE") != pem.npos ||
      pem.find("BEGIN ENCRYPTED COSIGN") != pem.npos) {
    return KeyError(fmt::format(
        "is encrypted in cosign's own format, which cachewarm cannot read: sign the bundle with "
        "cosign sign instead, or {}; to use key.pem with cosign too, run cosign import-key-pair "
        "--key key.pem",
        kHowToMakeKey));
  }
  const Bio bio = Memory(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return KeyError(pem.find("ENCRYPTED") == pem.npos
                        ? fmt::format("holds no complete PEM \"PRIVATE KEY\"; {}", kHowToMakeKey)
                        : "is encrypted: remove the password (openssl pkey -in FILE -out key.pem) "
                          "and protect the file");
  }
  if (!IsP256(key.get())) {
    return KeyError(fmt::format("is not ECDSA on P-256; {}", kHowToMakeKey));
  }
  std::string hint = HintOf(key.get());
  auto state = std::make_shared<const PublicKey::State>(PublicKey::State{std::move(key)});
  return PrivateKey(PublicKey(std::move(state), std::move(hint)));
}

absl::StatusOr<std::string> PrivateKey::Sign(std::string_view message) const {
  const Context context(EVP_MD_CTX_new());
  EVP_PKEY* key = public_key_.state_->key.get();
  size_t size = 0;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(message), message.size()) != 1) {
    return KeyError("the key cannot sign");
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     Bytes(message), message.size()) != 1) {
    return KeyError("the key cannot sign");
  }
  signature.resize(size);
  return signature;
}

}  // namespace cachewarm::bundle
