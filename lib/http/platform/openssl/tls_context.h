// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "lib/http/client.h"

struct ssl_ctx_st;  // SSL_CTX

namespace cachewarm::http {

// Initializes OpenSSL and thereby registers its exit handler. Call this before any static object is
// created whose thread uses OpenSSL. Exit handlers and destructors of static objects run in the
// reverse order of registration and creation: such a thread then ends before OpenSSL frees the
// thread's data.
void PlaceOpensslCleanup();

// Trust anchors and client identity from TlsOptions. Each Configure() reads the files again; if a
// file cannot be read or parsed, its last good content stays in use. Thread-safe.
class TlsMaterial {
 public:
  explicit TlsMaterial(TlsOptions options);
  ~TlsMaterial();

  // Reads all files. INVALID_ARGUMENT, naming the option, if one of them cannot be used. If no CA
  // is configured, uses the system's authorities, which may be missing.
  absl::Status Load();

  // Configures `context`: minimum version TLS 1.2, trust in the loaded authorities only, the client
  // certificate if there is one, and the expected name of the server. Handshakes with `context`
  // must end before this object is destroyed.
  absl::Status Configure(ssl_ctx_st* context);

 private:
  struct Content;
  absl::Status Read(Content& content) const;

  TlsOptions options_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::http
