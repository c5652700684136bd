// SPDX-License-Identifier: Apache-2.0
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/pki/certificates.h"
#include "lib/pki/platform/openssl/handles.h"

namespace cachewarm::pki {
namespace {

constexpr int kVersion3 = 2;
constexpr int kSerialBits = 159;  // RFC 5280: at most 20 octets, and positive: the top bit is 0
constexpr size_t kNameBytesMax = 64;

absl::Status Failed(std::string_view doing) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return absl::InternalError(fmt::format("{}: {}", doing, reason.data()));
}

std::string WriteKey(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return Content(bio.get());
}

Key MakeKey() {
  char curve[] = "P-256";
  return Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve));
}

// An unsigned certificate and its issuer.
struct Draft {
  X509* certificate;
  X509* issuer;

  bool SetSerial() const {
    const Number number(BN_new());
    return BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
           BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
  }

  bool SetTimes(const Validity& validity) const {
    const auto seconds = [](WallTime time) {
      return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
    };
    return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(validity.from)) != nullptr &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(validity.until)) != nullptr;
  }

  bool SetName(const std::string& name) const {
    const std::string text = name.substr(0, kNameBytesMax);
    X509_NAME* subject = X509_get_subject_name(certificate);
    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1 &&
           X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1;
  }

  bool Add(int nid, const std::string& value) const {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
  }
};

struct Made {
  X509Pointer certificate;
  Key key;
};

absl::StatusOr<Made> Begin(const std::string& name, const Validity& validity, X509* issuer) {
  Made made{.certificate = X509Pointer(X509_new()), .key = MakeKey()};
  if (made.certificate == nullptr || made.key == nullptr) {
    return Failed("cannot make a key");
  }
  const Draft draft{.certificate = made.certificate.get(),
                    .issuer = issuer == nullptr ? made.certificate.get() : issuer};
  if (X509_set_version(draft.certificate, kVersion3) != 1 || !draft.SetSerial() ||
      !draft.SetTimes(validity) || !draft.SetName(name) ||
      X509_set_pubkey(draft.certificate, made.key.get()) != 1 ||
      !draft.Add(NID_subject_key_identifier, "hash")) {
    return Failed("cannot make a certificate");
  }
  return made;
}

absl::StatusOr<KeyPair> Finish(const Made& made, EVP_PKEY* signer) {
  if (X509_sign(made.certificate.get(), signer, EVP_sha256()) == 0) {
    return Failed("cannot sign a certificate");
  }
  return KeyPair{.certificate = WritePem(made.certificate.get()), .key = WriteKey(made.key.get())};
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(const std::string& name, const Validity& validity) {
  CW_ASSIGN_OR_RETURN(const Made made, Begin(name, validity, nullptr));
  const Draft draft{.certificate = made.certificate.get(), .issuer = made.certificate.get()};
  if (!draft.Add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !draft.Add(NID_key_usage, "critical,keyCertSign,cRLSign")) {
    return Failed("cannot make an authority");
  }
  return Finish(made, made.key.get());
}

absl::StatusOr<KeyPair> IssueServing(const KeyPair& authority,
                                     const std::vector<std::string>& dns_names,
                                     const Validity& validity) {
  const X509Pointer issuer = ReadCertificate(authority.certificate);
  const Key signer = ReadKey(authority.key);
  if (issuer == nullptr || signer == nullptr || dns_names.empty()) {
    return absl::InvalidArgumentError(
        "the authority or its key cannot be parsed, or no DNS name is given");
  }
  CW_ASSIGN_OR_RETURN(const Made made, Begin(dns_names.front(), validity, issuer.get()));
  std::string names;
  for (const std::string& name : dns_names) {
    names += (names.empty() ? "DNS:" : ",DNS:") + name;
  }
  const Draft draft{.certificate = made.certificate.get(), .issuer = issuer.get()};
  if (!draft.Add(NID_basic_constraints, "critical,CA:FALSE") ||
      !draft.Add(NID_key_usage, "critical,digitalSignature") ||
      !draft.Add(NID_ext_key_usage, "serverAuth") || !draft.Add(NID_subject_alt_name, names) ||
      !draft.Add(NID_authority_key_identifier, "keyid:always")) {
    return Failed("cannot make a serving certificate");
  }
  return Finish(made, signer.get());
}

}  // namespace cachewarm::pki
