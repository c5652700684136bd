// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/openssl/tls_context.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

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

// Index of the TlsOptions in a SSL_CTX whose server is verified as the options say.
int OptionsIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const TlsOptions& OptionsOf(const SSL_CTX* context) {
  return *static_cast<const TlsOptions*>(SSL_CTX_get_ex_data(context, OptionsIndex()));
}

bool IsAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

// Requests the configured name by SNI. The HTTP library has set the host of the URL before.
void RequestServerName(const SSL* connection, int event, int /*result*/) {
  if ((event & SSL_CB_HANDSHAKE_START) == 0) {
    return;
  }
  const std::string& name = OptionsOf(SSL_get_SSL_CTX(connection)).server_name;
  if (!name.empty() && !IsAddress(name)) {
    // SSL_set_tlsext_host_name(), which is a macro with an old-style cast.
    SSL_ctrl(const_cast<SSL*>(connection), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));
  }
}

// Replaces OpenSSL's verification, and with it the HTTP library's check of the URL's host.
int VerifyServer(X509_STORE_CTX* chain, void* argument) {
  const auto& options = *static_cast<const TlsOptions*>(argument);
  if (options.skip_verification) {
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
  }
  X509_VERIFY_PARAM* expected = X509_STORE_CTX_get0_param(chain);
  const int is_set = IsAddress(options.server_name)
                         ? X509_VERIFY_PARAM_set1_ip_asc(expected, options.server_name.c_str())
                         : X509_VERIFY_PARAM_set1_host(expected, options.server_name.data(),
                                                       options.server_name.size());
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  X509_STORE_CTX_set_verify_cb(chain, [](int is_valid, X509_STORE_CTX*) { return is_valid; });
  return is_set == 1 ? X509_verify_cert(chain) : 0;
}

// Applies server_name and skip_verification, which must live as long as the handshakes.
void OverrideVerification(SSL_CTX* context, TlsOptions& options) {
  if (options.server_name.empty() && !options.skip_verification) {
    return;
  }
  SSL_CTX_set_ex_data(context, OptionsIndex(), &options);
  SSL_CTX_set_info_callback(context, RequestServerName);
  SSL_CTX_set_cert_verify_callback(context, VerifyServer, &options);
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
  OverrideVerification(context, options_);
  if (!state_->content.certificate.empty()) {
    CW_RETURN_IF_ERROR(UseCertificate(context, state_->content.certificate));
    CW_RETURN_IF_ERROR(UseKey(context, state_->content.key));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::http
