// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/beast/session.h"

#include <boost/asio/dispatch.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace cachewarm::http {
namespace {

namespace beast = boost::beast;
using beast::http::field;
using beast::http::status;

std::string Text(beast::string_view text) {
  return {text.data(), text.size()};
}

status ErrorStatusOf(beast::error_code error) {
  if (error == beast::http::error::header_limit) {
    return status::request_header_fields_too_large;
  }
  if (error == beast::http::error::body_limit) {
    return status::payload_too_large;
  }
  return status::bad_request;
}

bool IsMalformed(beast::error_code error) {
  return error.category() ==
         beast::http::make_error_code(beast::http::error::bad_method).category();
}

ServerRequest ToRequest(const beast::http::request<beast::http::string_body>& message) {
  ServerRequest request;
  const std::string target = Text(message.target());
  const size_t end = std::min(target.find('?'), target.size());
  request.method = Text(message.method_string());
  request.path = target.substr(0, end);
  request.query = target.substr(std::min(end + 1, target.size()));
  for (const auto& each : message) {
    request.headers.Add(Text(each.name_string()), Text(each.value()));
  }
  request.body = message.body();
  return request;
}

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kRequestReadBytes = 4096;
// Timeout for the TLS close_notify exchange.
constexpr std::chrono::seconds kCloseNotifyTimeout{1};

// A session over a plain or TLS stream.
template <typename Stream>
class StreamSession : public Session {
 public:
  template <typename... Arguments>
  explicit StreamSession(const SessionDependencies& dependencies, Arguments&&... arguments)
      : stream_(std::forward<Arguments>(arguments)...),
        options_(dependencies.options),
        routes_(dependencies.routes),
        draining_(dependencies.draining),
        buffer_(dependencies.options.header_bytes_max + kRequestReadBytes) {}

  void Run() override {
    boost::asio::dispatch(stream_.get_executor(), [self = Self()] {
      if (!self->closing_) {
        self->Begin();
      }
    });
  }

  void Close() override {
    boost::asio::dispatch(stream_.get_executor(), [self = Self()] {
      self->closing_ = true;
      if (self->idle_) {
        self->CloseSocket();
      }
    });
  }

 protected:
  virtual void Begin() { AwaitRequest(); }
  virtual void End() { CloseSocket(); }

  std::shared_ptr<StreamSession> Self() {
    return std::static_pointer_cast<StreamSession>(shared_from_this());
  }
  beast::tcp_stream& Socket() { return beast::get_lowest_layer(stream_); }

  void CloseSocket() {
    beast::error_code ignored;
    Socket().socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
    Socket().close();
  }

  void AwaitRequest() {
    idle_ = true;
    if (closing_) {
      return End();
    }
    if (buffer_.size() > 0) {
      return BeginRequest();  // the buffer already holds the next request
    }
    Socket().expires_after(options_.idle_timeout);
    stream_.async_read_some(buffer_.prepare(kRequestReadBytes),
                            [self = Self()](beast::error_code error, size_t count) {
                              if (error) {
                                return self->CloseSocket();
                              }
                              self->buffer_.commit(count);
                              self->BeginRequest();
                            });
  }

  Stream stream_;
  const ServerOptions& options_;

 private:
  using Parser = beast::http::request_parser<beast::http::string_body>;
  using Answer = beast::http::response<beast::http::string_body>;

  void BeginRequest() {
    idle_ = false;
    Socket().expires_after(options_.request_timeout);
    ReadHead();
  }

  // Reads the head and checks its length. The check of Beast 1.74 is not sufficient: it runs only
  // when the head is complete, and it counts from 0 again when a packet ends with the first letter
  // of a header.
  void ReadHead() {
    const auto bytes = buffer_.cdata();
    const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
    if (text.find("\r\n\r\n") != std::string_view::npos) {
      return ReadRequest();
    }
    if (text.size() > options_.header_bytes_max) {
      return Refuse(status::request_header_fields_too_large);
    }
    stream_.async_read_some(buffer_.prepare(kRequestReadBytes),
                            [self = Self()](beast::error_code error, size_t count) {
                              if (error) {
                                return self->End();
                              }
                              self->buffer_.commit(count);
                              self->ReadHead();
                            });
  }

  void ReadRequest() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(options_.header_bytes_max));
    parser_->body_limit(options_.body_bytes_max);
    beast::http::async_read(
        stream_, buffer_, *parser_,
        [self = Self()](beast::error_code error, size_t) { self->OnRequest(error); });
  }

  void OnRequest(beast::error_code error) {
    if (error) {
      return IsMalformed(error) && error != beast::http::error::end_of_stream &&
                     error != beast::http::error::partial_message
                 ? Refuse(ErrorStatusOf(error))
                 : End();
    }
    const auto& request = parser_->get();
    const bool keep_alive = request.keep_alive() && !closing_ && !draining_;
    Write(Handle(request), request.method() == beast::http::verb::head, keep_alive);
  }

  void Refuse(status refusal) {
    ServerResponse response;
    response.status = static_cast<int>(refusal);
    response.body = Text(beast::http::obsolete_reason(refusal)) + "\n";
    Write(response, false, false);
  }

  ServerResponse Handle(const Parser::value_type& message) const {
    const ServerRequest request = ToRequest(message);
    const auto route = routes_.find(request.path);
    if (route == routes_.end()) {
      return {.status = 404, .body = "not found\n"};
    }
    try {
      return route->second(request);
    } catch (const std::exception&) {
      return {.status = 500, .body = "internal error\n"};
    }
  }

  void Write(const ServerResponse& response, bool is_head, bool keep_alive) {
    answer_ = Answer(static_cast<status>(response.status), 11);
    answer_.set(field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) {
      answer_.insert(name, value);
    }
    answer_.keep_alive(keep_alive);
    answer_.content_length(response.body.size());
    if (!is_head) {
      answer_.body() = response.body;
    }
    parser_.reset();  // frees the request: it may be large, and the connection may stay idle
    beast::http::async_write(stream_, answer_,
                             [self = Self(), keep_alive](beast::error_code error, size_t) {
                               if (error || !keep_alive || self->closing_) {
                                 return self->End();
                               }
                               self->AwaitRequest();
                             });
  }

  const std::map<std::string, Handler>& routes_;
  const std::atomic<bool>& draining_;
  // Received bytes that are not parsed yet. Its maximum size also limits trailers and chunk
  // extensions.
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  Answer answer_;
  bool idle_ = true;
  bool closing_ = false;
};

class TlsSession final : public StreamSession<TlsStream> {
 public:
  TlsSession(boost::asio::ip::tcp::socket socket,
             std::shared_ptr<boost::asio::ssl::context> context,
             const SessionDependencies& dependencies)
      : StreamSession(dependencies, std::move(socket), *context), context_(std::move(context)) {}

 protected:
  void Begin() override {
    Socket().expires_after(options_.request_timeout);
    stream_.async_handshake(boost::asio::ssl::stream_base::server,
                            [this, self = Self()](beast::error_code error) {
                              if (error) {
                                return CloseSocket();
                              }
                              AwaitRequest();
                            });
  }

  void End() override {
    Socket().expires_after(kCloseNotifyTimeout);
    stream_.async_shutdown(
        [this, self = Self()](const beast::error_code& /*ignored*/) { CloseSocket(); });
  }

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace

std::unique_ptr<Session> MakePlainSession(boost::asio::ip::tcp::socket socket,
                                          const SessionDependencies& dependencies) {
  return std::make_unique<StreamSession<PlainStream>>(dependencies, std::move(socket));
}

std::unique_ptr<Session> MakeTlsSession(boost::asio::ip::tcp::socket socket,
                                        std::shared_ptr<boost::asio::ssl::context> context,
                                        const SessionDependencies& dependencies) {
  return std::make_unique<TlsSession>(std::move(socket), std::move(context), dependencies);
}

}  // namespace cachewarm::http
