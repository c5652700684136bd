// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/http/headers.h"
#include "lib/http/server_identity.h"

namespace cachewarm::http {

struct ServerRequest {
  std::string method;  // "GET"
  std::string path;    // as sent, without the query
  std::string query;   // without '?'
  Headers headers;
  std::string body;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  Headers headers;
  std::string body;
};

// Called on one of the server's threads, several at once. Should answer within `request_timeout`;
// an exception out of it is answered with 500.
using Handler = std::function<ServerResponse(const ServerRequest&)>;

struct ServerOptions {
  std::string address = "0.0.0.0";  // an IP address
  uint16_t port = 0;                // 0: any free one
  int threads = 2;
  int connections_max = 64;              // further ones are closed at once
  size_t header_bytes_max = 16U << 10U;  // up to 32 KiB; over it: 431, then closed
  size_t body_bytes_max = 1U << 20U;     // over it: 413, then closed
  Duration request_timeout{10'000};      // from the first byte to the last one written
  Duration idle_timeout{60'000};         // of a kept connection between requests
  // Speaks TLS 1.2 or newer and shows this; null: plain HTTP. While it has no certificate yet,
  // connections are closed at once. The handshake has to end within `request_timeout`.
  std::shared_ptr<const ServerIdentity> identity;
};

// An HTTP/1.1 server, for probes, metrics and admission. Unknown paths get 404, a handler sees
// every method of its path and HEAD gets the GET answer without its body.
class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;  // stops it

  virtual uint16_t port() const = 0;
  // From now on each answer ends its connection, so that clients find another server before Stop().
  // New connections are taken as before. From any thread.
  virtual void Drain() = 0;
  // Ends listening and every idle connection at once, gives running requests 1 s to be answered and
  // returns when their handlers have. From any thread but a handler's; later calls do nothing.
  virtual void Stop() = 0;
};

// Listens before it returns. UNAVAILABLE with address and port when it cannot.
absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    std::map<std::string, Handler> routes);

}  // namespace cachewarm::http
