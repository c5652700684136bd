// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::http {

// The certificate of a TLS server. It may be replaced while the server runs: new connections use
// the new certificate, existing ones keep the old one. Thread-safe.
class ServerIdentity {
 public:
  ServerIdentity();
  ServerIdentity(const ServerIdentity&) = delete;
  ServerIdentity& operator=(const ServerIdentity&) = delete;
  ~ServerIdentity();

  // Replaces the identity by PEM texts: the certificate with its chain, leaf first, and its
  // unencrypted key. INVALID_ARGUMENT describes the fault; the previous identity then stays in use.
  absl::Status Use(std::string_view certificate_pem, std::string_view key_pem);

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::http
