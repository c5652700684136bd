// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/beast/identity.h"

#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace cachewarm::http {
namespace {

namespace ssl = boost::asio::ssl;

absl::Status InvalidPem(std::string_view what, const boost::system::error_code& error) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", what, error.message()));
}

boost::asio::const_buffer Bytes(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

ServerIdentity::ServerIdentity() : state_(std::make_unique<State>()) {}
ServerIdentity::~ServerIdentity() = default;

absl::Status ServerIdentity::Use(std::string_view certificate_pem, std::string_view key_pem) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code error;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // Reject an encrypted key instead of prompting for its password.
  context->set_password_callback(
      [](size_t, ssl::context::password_purpose) { return std::string(); }, error);
  if (!error) {
    context->use_certificate_chain(Bytes(certificate_pem), error);
  }
  if (error) {
    return InvalidPem("certificate", error);
  }
  context->use_private_key(Bytes(key_pem), ssl::context::pem, error);
  if (error) {
    return InvalidPem("key", error);
  }
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return absl::InvalidArgumentError("key: it does not belong to the certificate");
  }
  std::lock_guard lock(state_->mutex);
  state_->context = std::move(context);
  return absl::OkStatus();
}

}  // namespace cachewarm::http
