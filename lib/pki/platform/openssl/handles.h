// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bn.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/platform/openssl/handles.h"

namespace cachewarm::pki {

using openssl::Bio;
using openssl::Deleter;
using openssl::Key;
using openssl::Memory;
using openssl::X509Pointer;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

// Returns the bytes in a memory BIO (BIO_s_mem()).
std::string Content(BIO* bio);

// Return the first certificate or private key of a PEM text. Null if there is none, if the text has
// more than 256 KiB, or if the key has a password.
X509Pointer ReadCertificate(std::string_view pem);
Key ReadKey(std::string_view pem);
std::string WritePem(X509* certificate);

}  // namespace cachewarm::pki
