// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace cachewarm::fakes {

// One accepted connection of a RawServer, on its own thread. Every call fails silently once the
// peer or the server has closed, so that scripts simply end.
class RawConnection {
 public:
  virtual ~RawConnection() = default;
  // Head and body (by Content-Length) of the next request; empty when the peer closed.
  virtual std::string ReadRequest() = 0;
  virtual void Write(std::string_view bytes) = 0;
  // Bytes accepted by the kernel so far; grows only while the peer reads.
  virtual uint64_t written() const = 0;
  // Blocks without reading or writing until the server stops, like a half-open peer.
  virtual void BlockUntilStop() = 0;
  // Blocks until the peer closes; false when the server was stopped first.
  virtual bool AwaitPeerClose() = 0;
  virtual void Reset() = 0;  // RST instead of FIN
};

struct RawServerOptions {
  std::string certificate_file;  // PEM; empty: no TLS
  std::string key_file;
  std::string client_ca_file;  // requires a client certificate
  int receive_buffer_bytes = 0;
};

// A server with scripted bytes: the script runs once per connection, with the number of the
// connection, counted from 0.
class RawServer {
 public:
  using Script = std::function<void(RawConnection&, int)>;

  explicit RawServer(Script script, const RawServerOptions& options = {});
  ~RawServer();  // ends every connection and waits for the scripts

  uint16_t port() const;
  std::string Url(std::string_view target) const;  // "http[s]://127.0.0.1:port/target"
  int connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "HTTP/1.1 200 OK", Content-Length and the body.
std::string RawResponse(int status, std::string_view body, std::string_view headers = "");
// One chunk of a chunked body.
std::string RawChunk(std::string_view bytes);

}  // namespace cachewarm::fakes
