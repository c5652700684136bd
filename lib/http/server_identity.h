// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::http {

// What a TLS server shows of itself. It may be replaced while the server runs: connections that are
// made from then on see the new certificate, those that stand go on with the old one. Thread-safe.
class ServerIdentity {
 public:
  ServerIdentity();
  ServerIdentity(const ServerIdentity&) = delete;
  ServerIdentity& operator=(const ServerIdentity&) = delete;
  ~ServerIdentity();

  // PEM texts: the certificate with its chain, leaf first, and its unencrypted key.
  // INVALID_ARGUMENT says what is wrong with them; what was used before then stays in use.
  absl::Status Use(std::string_view certificate_pem, std::string_view key_pem);

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::http
