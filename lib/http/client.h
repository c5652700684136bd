// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/http/proxy.h"
#include "lib/http/rate_floor.h"
#include "lib/http/text/headers.h"

namespace cachewarm::http {

enum class Method { kGet, kHead, kPost, kPut, kPatch, kDelete };
std::string_view MethodName(Method method);

// The bytes of an upload, read by the client on the thread that called Send().
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Reads up to `out.size()` bytes into `out` and returns their number; 0 only at the end. May
  // block.
  virtual absl::StatusOr<size_t> Read(std::span<char> out) = 0;
  // Returns the announced length; Read() must deliver exactly that many bytes.
  virtual uint64_t size() const = 0;
};

struct Request {
  Method method = Method::kGet;
  std::string url;  // absolute; http or https
  Headers headers;
  std::string body;
  BodySource* source = nullptr;  // if set, sent instead of `body`; must live until the call ends
  // The request fails with DEADLINE_EXCEEDED if no byte is transferred for this time, also while
  // connecting. The time during which a sink or source of the caller blocks does not count.
  Duration inactivity{30'000};
  // Limit of Response::body. RESOURCE_EXHAUSTED if it is exceeded.
  size_t body_bytes_max = 4U << 20U;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;  // empty if a sink received it
};

// Receives the body of a 2xx response as it arrives, on the thread that called Stream(). Its
// methods may block: the server is then slowed down, and at most 1 MiB is held in memory.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // Called once before any Write(), for a 2xx response only. An error ends the transfer with that
  // error.
  virtual absl::Status Begin(const Response& head) {
    static_cast<void>(head);
    return absl::OkStatus();
  }
  // Receives a piece of length >= 1. An error ends the transfer with that error.
  virtual absl::Status Write(std::string_view bytes) = 0;
};

// Sends HTTP requests. Thread-safe. Use MakeClient() for servers that the administrator configured,
// and MakeBoundedClient() (lib/http/bounded_client.h) for untrusted ones. Every HTTP response,
// including 4xx and 5xx, is a Response; StatusOf() converts it into an error. A call returns an
// error only if it received no complete response: UNAVAILABLE (refused, reset, truncated, name not
// found, certificate not accepted), DEADLINE_EXCEEDED (inactivity), CANCELLED (stop),
// INVALID_ARGUMENT (malformed request), RESOURCE_EXHAUSTED (response too large). Does not follow
// redirects, keep cookies or decompress bodies. Returns within 1 s of `stop`, unless a sink or
// source blocks longer.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Returns the whole response.
  virtual absl::StatusOr<Response> Send(const Request& request, std::stop_token stop) = 0;
  // Returns the response, but passes the body of a 2xx response to `sink`. The body of any other
  // response, truncated to body_bytes_max, is in the result. After an error the sink keeps the
  // bytes that it received.
  virtual absl::StatusOr<Response> Stream(const Request& request, BodySink& sink,
                                          std::stop_token stop) = 0;
};

// Trust anchors and client identity. Files are read again for every new connection, so that a
// rotated file takes effect; if a file cannot be read, its last good content stays in use.
struct TlsOptions {
  std::string ca_file;           // PEM; trusted instead of the system's authorities
  std::string ca_pem;            // the same as PEM text; if both are set, both are trusted
  std::string certificate_file;  // PEM: the client's certificate, then its chain; needs a key
  std::string certificate_pem;   // as certificate_file, but the PEM text itself
  std::string key_file;          // PEM: the unencrypted key of the client's certificate
  std::string key_pem;           // as key_file, but the PEM text itself
  // Name to request by SNI and to expect in the server's certificate; empty: the host of the URL.
  std::string server_name;
  bool skip_verification = false;  // accept every certificate of the server
};

struct ClientOptions {
  TlsOptions tls;  // TLS 1.2 or newer
  // Hosts that may be contacted over plain HTTP. Loopback hosts always may.
  std::vector<std::string> plain_http_hosts;
  std::string user_agent = "cachewarm";
  ProxyOptions proxy;  // fill it with ReadProxies() to respect HTTPS_PROXY and the like
  // A request that transfers fewer bytes than this while the client waits for the server fails with
  // DEADLINE_EXCEEDED. Do not set it for responses that are slow by design (watches).
  RateFloorLimits rate_floor;
  const Clock* clock = &SystemClock();  // measures these waits; must outlive the client
};

// Prepares the process for HTTP clients. Call it first in main, before any thread exists. It keeps
// OpenSSL from parsing the system's certificate authorities for every connection (23 ms each), and
// starts the one I/O thread that all clients share.
void PrepareProcess();

// Returns a client for any number of servers; it keeps and reuses connections per origin. For
// trusted servers only (API server, registries, stores): cpprestsdk buffers headers and chunks of
// any length before it passes them on, so that a server that never stops sending them exhausts the
// memory. INVALID_ARGUMENT if a certificate, key or CA cannot be read, or a proxy is malformed;
// INTERNAL if the I/O thread cannot be started.
absl::StatusOr<std::unique_ptr<Client>> MakeClient(const ClientOptions& options);

// Converts a response into a status: its HTTP status gives the code (CodeOfHttpStatus()), the
// beginning of its body the message.
absl::Status StatusOf(const Response& response);

}  // namespace cachewarm::http
