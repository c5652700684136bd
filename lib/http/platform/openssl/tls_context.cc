// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/openssl/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "lib/base/platform/openssl/handles.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::http {
namespace {

constexpr char kSystemAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";
constexpr int64_t kPemBytesMax = 4 << 20;

using openssl::Bio;
using openssl::Deleter;
using openssl::Key;
using openssl::Memory;
using openssl::X509Pointer;
using Authorities = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;

absl::Status OpensslError(std::string_view doing) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return absl::InvalidArgumentError(fmt::format("{}: {}", doing, reason.data()));
}

absl::StatusOr<std::string> ReadPem(std::string_view option, const std::string& path) {
  const absl::StatusOr<std::string> text = fs::ReadNamedFile(path, kPemBytesMax);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: cannot read {}: check that the file exists and is readable", option,
                    Message(text.status())));
  }
  return *text;
}

absl::StatusOr<Authorities> ParseAuthorities(const std::string& pem) {
  Authorities store(X509_STORE_new());
  const Bio bio = Memory(pem);
  int count = 0;
  while (X509Pointer certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), certificate.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) {
    return absl::InvalidArgumentError("the CA (ca_file, ca_pem) holds no PEM certificate");
  }
  return store;
}

absl::Status UseCertificate(SSL_CTX* context, const std::string& pem) {
  const Bio bio = Memory(pem);
  const X509Pointer leaf(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return OpensslError("client certificate: not a PEM certificate");
  }
  SSL_CTX_clear_chain_certs(context);
  while (X509Pointer next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) {
      return OpensslError("client certificate chain");
    }
  }
  ERR_clear_error();
  return absl::OkStatus();
}

absl::Status UseKey(SSL_CTX* context, const std::string& pem) {
  const Bio bio = Memory(pem);
  // Pass an empty password: otherwise OpenSSL would ask for the password of an encrypted key on the
  // terminal.
  char no_password[] = "";
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return OpensslError(
        "client key: expected the unencrypted private key of the client certificate, as PEM");
  }
  return absl::OkStatus();
}

}  // namespace

void PlaceOpensslCleanup() {
  OPENSSL_init_ssl(0, nullptr);
}

struct TlsMaterial::Content {
  std::string ca;
  std::string certificate;
  std::string key;
  bool operator==(const Content&) const = default;
};

struct TlsMaterial::State {
  std::mutex mutex;
  Content content;
  Authorities authorities;
};

TlsMaterial::TlsMaterial(TlsOptions options)
    : options_(std::move(options)), state_(std::make_unique<State>()) {}
TlsMaterial::~TlsMaterial() = default;

absl::Status TlsMaterial::Read(Content& content) const {
  const auto read = [](std::string_view option, const std::string& path, const std::string& text,
                       std::string& out) -> absl::Status {
    out = text;
    if (!path.empty()) {
      CW_ASSIGN_OR_RETURN(const std::string pem, ReadPem(option, path));
      out += pem;
    }
    return absl::OkStatus();
  };
  if (options_.certificate_file.empty() && options_.certificate_pem.empty()) {
    if (!options_.key_file.empty() || !options_.key_pem.empty()) {
      return absl::InvalidArgumentError("key: a client key needs a client certificate");
    }
  }
  CW_RETURN_IF_ERROR(read("ca_file", options_.ca_file, options_.ca_pem, content.ca));
  if (options_.ca_file.empty() && options_.ca_pem.empty()) {
    read("ca_file", kSystemAuthorities, "", content.ca).IgnoreError();
  }
  CW_RETURN_IF_ERROR(read("certificate_file", options_.certificate_file, options_.certificate_pem,
                          content.certificate));
  return read("key_file", options_.key_file, options_.key_pem, content.key);
}

absl::Status TlsMaterial::Load() {
  Content content;
  CW_RETURN_IF_ERROR(Read(content));
  std::lock_guard lock(state_->mutex);
  if (content == state_->content && state_->authorities != nullptr) {
    return absl::OkStatus();
  }
  Authorities authorities(X509_STORE_new());
  const bool has_own_ca = !options_.ca_file.empty() || !options_.ca_pem.empty();
  if (has_own_ca || !content.ca.empty()) {
    CW_ASSIGN_OR_RETURN(authorities, ParseAuthorities(content.ca));
  }
  if (!content.certificate.empty()) {
    const Context scratch(SSL_CTX_new(TLS_client_method()));
    CW_RETURN_IF_ERROR(UseCertificate(scratch.get(), content.certificate));
    CW_RETURN_IF_ERROR(UseKey(scratch.get(), content.key));
  }
  state_->content = std::move(content);
  state_->authorities = std::move(authorities);
  return absl::OkStatus();
}

absl::Status TlsMaterial::Configure(ssl_ctx_st* context) {
  Load().IgnoreError();  // may fail while files are rotated: the last good content stays in use
  std::lock_guard lock(state_->mutex);
  if (state_->authorities == nullptr) {
    return absl::InvalidArgumentError("no TLS configuration has been loaded");
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Replace the system's authorities, so that a configured private CA is the only trusted one.
  SSL_CTX_set1_cert_store(context, state_->authorities.get());
  if (!state_->content.certificate.empty()) {
    CW_RETURN_IF_ERROR(UseCertificate(context, state_->content.certificate));
    CW_RETURN_IF_ERROR(UseKey(context, state_->content.key));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::http
