// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::pki {

template <auto free_function>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, Deleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

inline Bio Memory(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// What was written into a BIO_s_mem().
std::string Content(BIO* bio);

// The first certificate or the private key of a PEM text; null when there is none. A key under a
// password counts as none.
X509Pointer ReadCertificate(std::string_view pem);
Key ReadKey(std::string_view pem);
std::string WritePem(X509* certificate);

}  // namespace cachewarm::pki
