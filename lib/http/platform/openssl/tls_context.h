// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "lib/http/client.h"

struct ssl_ctx_st;  // SSL_CTX

namespace cachewarm::http {

// OpenSSL cleans up when the process ends, after whatever was set up for the end later than this.
// To be called before the first static object that owns a thread which uses OpenSSL: such a thread
// must have ended by then, or what OpenSSL keeps per thread is never freed.
void PlaceOpensslCleanup();

// Trust and identity out of TlsOptions. Files are read again by each Configure(); one that cannot
// be read or parsed then leaves its last good content. Thread-safe.
class TlsMaterial {
 public:
  explicit TlsMaterial(TlsOptions options);
  ~TlsMaterial();

  // INVALID_ARGUMENT with the option's name when something that was given cannot be used. Without
  // any CA given, the system's authorities count and need not exist.
  absl::Status Load();

  // TLS 1.2 at least, exactly our authorities, the client's certificate if there is one.
  absl::Status Configure(ssl_ctx_st* context);

 private:
  struct Content;
  absl::Status Read(Content& content) const;

  TlsOptions options_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::http
