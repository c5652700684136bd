// SPDX-License-Identifier: Apache-2.0
#include "lib/pki/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

#include "fmt/format.h"
#include "lib/pki/platform/openssl/handles.h"

namespace cachewarm::pki {
namespace {

constexpr size_t kPemBytesMax = 256U << 10U;
constexpr size_t kCertificatesMax = 32;

using Names = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

int NoPassword(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*unused*/) {
  return -1;
}

WallTime TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return WallTime{};
  }
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

std::vector<std::string> DnsNamesOf(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> out;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      const ASN1_IA5STRING* text = name->d.dNSName;
      out.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                       static_cast<size_t>(ASN1_STRING_length(text)));
    }
  }
  return out;
}

absl::Status InvalidPem(std::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(std::string(what));
}

}  // namespace

std::string Content(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : std::string();
}

X509Pointer ReadCertificate(std::string_view pem) {
  if (pem.size() > kPemBytesMax) {
    return nullptr;
  }
  const Bio bio = Memory(pem);
  X509Pointer certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return certificate;
}

Key ReadKey(std::string_view pem) {
  if (pem.size() > kPemBytesMax) {
    return nullptr;
  }
  const Bio bio = Memory(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::string WritePem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return Content(bio.get());
}

absl::StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem) {
  if (pem.size() > kPemBytesMax) {
    return InvalidPem(fmt::format("is larger than {} bytes", kPemBytesMax));
  }
  const Bio bio = Memory(pem);
  std::vector<Certificate> certificates;
  ERR_clear_error();
  while (const X509Pointer read{PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)}) {
    if (certificates.size() == kCertificatesMax) {
      return InvalidPem(fmt::format("contains more than {} certificates", kCertificatesMax));
    }
    certificates.push_back({.pem = WritePem(read.get()),
                            .from = TimeOf(X509_get0_notBefore(read.get())),
                            .until = TimeOf(X509_get0_notAfter(read.get())),
                            .dns_names = DnsNamesOf(read.get())});
  }
  // PEM_read stops at the end of the text (PEM_R_NO_START_LINE) or at a malformed block. Only in
  // the first case has every certificate been read.
  if (certificates.empty() || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return InvalidPem(
        "contains no PEM block \"CERTIFICATE\", or one that is incomplete or malformed");
  }
  ERR_clear_error();
  return certificates;
}

bool IsSignedBy(std::string_view certificate, std::string_view authority) {
  const X509Pointer signed_one = ReadCertificate(certificate);
  const X509Pointer signer = ReadCertificate(authority);
  if (signed_one == nullptr || signer == nullptr) {
    return false;
  }
  const bool good = X509_verify(signed_one.get(), X509_get0_pubkey(signer.get())) == 1;
  ERR_clear_error();
  return good;
}

bool KeyMatches(std::string_view key, std::string_view certificate) {
  const Key read = ReadKey(key);
  const X509Pointer leaf = ReadCertificate(certificate);
  if (read == nullptr || leaf == nullptr) {
    return false;
  }
  const bool good = X509_check_private_key(leaf.get(), read.get()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace cachewarm::pki
