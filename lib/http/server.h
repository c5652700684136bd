// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/http/server_identity.h"
#include "lib/http/text/headers.h"

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

// Called concurrently, on the threads of the server. Should return within `request_timeout`. If it
// throws an exception, the server responds with 500.
using Handler = std::function<ServerResponse(const ServerRequest&)>;

struct ServerOptions {
  std::string address = "0.0.0.0";  // an IP address
  uint16_t port = 0;                // 0: any free port
  int threads = 2;
  int connections_max = 64;  // further connections are closed at once
  // Limits of a request. If a request exceeds them, the server responds with 431 (header) or 413
  // (body) and closes the connection. Set header_bytes_max to at most 32 KiB.
  size_t header_bytes_max = 16U << 10U;
  size_t body_bytes_max = 1U << 20U;
  Duration request_timeout{10'000};  // from the request's first byte to the response's last one
  Duration idle_timeout{60'000};     // time after which an idle connection is closed
  // Serves TLS 1.2 or newer with this identity; null: plain HTTP. As long as the identity has no
  // certificate, connections are closed at once. The handshake must end within `request_timeout`.
  std::shared_ptr<const ServerIdentity> identity;
};

// An HTTP/1.1 server for probes, metrics and admission. Unknown paths get 404. A handler is called
// for every method of its path; the body of its response to HEAD is not sent.
class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;  // calls Stop()

  virtual uint16_t port() const = 0;
  // Makes each response close its connection, so that clients find another server before Stop().
  // Accepts new connections as before. Thread-safe.
  virtual void Drain() = 0;
  // Stops listening, closes idle connections at once, gives running requests 1 s to finish, and
  // returns when their handlers have returned. Do not call it from a handler. Later calls do
  // nothing.
  virtual void Stop() = 0;
};

// Starts a server, which listens before the call returns. UNAVAILABLE with address and port if it
// cannot listen.
absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    std::map<std::string, Handler> routes);

}  // namespace cachewarm::http
