// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "lib/http/client.h"

struct ssl_ctx_st;  // SSL_CTX

namespace cachewarm::http {

// Registers the exit handler of OpenSSL before the handlers of later objects. Call it before the
// first static object that owns a thread which uses OpenSSL: the thread must have ended before
// OpenSSL frees its per-thread data.
void PlaceOpensslCleanup();

// Trust anchors and client identity from TlsOptions. Each Configure() reads the files again; if a
// file cannot be read or parsed, its last good content stays in use. Thread-safe.
class TlsMaterial {
 public:
  explicit TlsMaterial(TlsOptions options);
  ~TlsMaterial();

  // Reads all files. INVALID_ARGUMENT names an option that cannot be used. Without a CA the
  // system's authorities are used and may be missing.
  absl::Status Load();

  // Configures `context`: TLS 1.2 as minimum, trust in exactly these authorities, and the client
  // certificate if there is one.
  absl::Status Configure(ssl_ctx_st* context);

 private:
  struct Content;
  absl::Status Read(Content& content) const;

  TlsOptions options_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::http
