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
#include "lib/http/headers.h"
#include "lib/http/proxy.h"

namespace cachewarm::http {

enum class Method { kGet, kHead, kPost, kPut, kPatch, kDelete };
std::string_view MethodName(Method method);

// Bytes of an upload, pulled by the client on the thread that called Send().
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Fills at most `out.size()` bytes and returns how many; 0 only at the end. May block.
  virtual absl::StatusOr<size_t> Read(std::span<char> out) = 0;
  // The length that is announced; Read() must give exactly that many.
  virtual uint64_t size() const = 0;
};

struct Request {
  Method method = Method::kGet;
  std::string url;  // absolute; http or https
  Headers headers;
  std::string body;
  BodySource* source = nullptr;  // instead of `body`; borrowed until Send() returns
  // The longest time without a byte moving, connecting included. While a sink or source of the
  // caller blocks, this clock stands still. Over it: DEADLINE_EXCEEDED.
  Duration inactivity{30'000};
  // The most that Response::body may hold. Over it: RESOURCE_EXHAUSTED.
  size_t body_bytes_max = 4U << 20U;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;  // empty where a sink took it
};

// Takes the body of a 2xx answer while it arrives, on the thread that called Stream(). It may
// block: the peer is then slowed down, and at most 1 MiB is held in memory.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // Called once, before any Write(), for a 2xx answer only. An error ends the transfer with it.
  virtual absl::Status Begin(const Response& head) {
    static_cast<void>(head);
    return absl::OkStatus();
  }
  // Pieces of any length >= 1. An error ends the transfer with it.
  virtual absl::Status Write(std::string_view bytes) = 0;
};

// Asks servers. Thread-safe. Which are there: MakeClient() for those that the administrator names,
// MakeBoundedClient() (lib/http/bounded_client.h) for those that may mean harm.
//
// Every HTTP answer, 4xx and 5xx too, is a Response: StatusOf() makes it an error. A status is
// returned only when there is no whole answer: UNAVAILABLE (refused, reset, cut short, name not
// found, certificate not accepted), DEADLINE_EXCEEDED (inactivity), CANCELLED (stop),
// INVALID_ARGUMENT (the request), RESOURCE_EXHAUSTED (a limit of the answer).
// Redirects are not followed, cookies not kept, bodies not decompressed.
// Returns within 1 s of `stop`, whatever the peer does, unless a sink or source blocks longer.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // The whole answer in memory.
  virtual absl::StatusOr<Response> Send(const Request& request, std::stop_token stop) = 0;
  // The body of a 2xx answer goes to `sink`; any other answer's body, cut at body_bytes_max, is in
  // the Response. When the transfer breaks off, what the sink took stays taken.
  virtual absl::StatusOr<Response> Stream(const Request& request, BodySink& sink,
                                          std::stop_token stop) = 0;
};

// Where trust and identity come from. Files are read again for every new connection, so that a
// rotated file counts from then on; a file that cannot be read leaves its last good content.
struct TlsOptions {
  std::string ca_file;           // PEM; trusted instead of the system's authorities
  std::string ca_pem;            // the same as text; both may be given
  std::string certificate_file;  // PEM chain of the client, with key_file
  std::string certificate_pem;
  std::string key_file;
  std::string key_pem;
};

struct ClientOptions {
  TlsOptions tls;  // TLS 1.2 or newer; certificate and host name are always verified
  // Hosts that may be spoken to over plain http beside loopback ones.
  std::vector<std::string> plain_http_hosts;
  std::string user_agent = "cachewarm";
  ProxyOptions proxy;  // the environment is not looked at
};

// First thing in main, before any thread: keeps OpenSSL from parsing the system's authorities for
// every connection (23 ms each). All clients of a process share one I/O thread, started here.
void PrepareProcess();

// A client of any number of servers; connections are kept and reused per origin.
// For servers that the administrator names alone (the API server, registries, stores): cpprestsdk
// keeps the headers of an answer, and each chunk of its body, whole and of any length before it
// gives them to us, so that only `inactivity` bounds them.
// INVALID_ARGUMENT when a certificate, key or CA given here cannot be read now, or a proxy is bad;
// INTERNAL when the process cannot start the I/O thread.
absl::StatusOr<std::unique_ptr<Client>> MakeClient(const ClientOptions& options);

// What the code means to a retry loop (lib/base/http_status.h), with the beginning of the body as
// message.
absl::Status StatusOf(const Response& response);

}  // namespace cachewarm::http
