// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdlib>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/platform/cpprest/body_buffer.h"
#include "lib/http/platform/cpprest/exchange.h"
#include "lib/http/platform/openssl/tls_context.h"
#include "lib/http/text/ascii.h"
#include "lib/http/text/url.h"

namespace cachewarm::http {
namespace {

using web::http::client::http_client;
using web::http::client::http_client_config;

constexpr size_t kSocketReadBytes = 256U << 10U;
constexpr size_t kOriginsMax = 32;
// Timeout of the library, so long that it never ends a transfer. A useful timeout would also end
// transfers whose sink blocks, because the library's timer does not stop meanwhile. Instead,
// Exchange::Await() measures the inactivity.
constexpr std::chrono::seconds kLibraryTimeout{24 * 3600};
constexpr Duration kCancelGrace{500};
constexpr int kStaleConnectionsMax = 4;

// Starts the library's I/O thread. There is only one, because two would race: cancelling on one
// thread closes a socket that the other thread may be reading
// (docs/design/0005-cancelling-in-cpprestsdk.md).
absl::Status StartIoThread() {
  PlaceOpensslCleanup();
  try {
    crossplat::threadpool::initialize_with_threads(1);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(
        fmt::format("cannot start the client's I/O thread: {}", error.what()));
  }
}

absl::Status EnsureIoThread() {
  static const absl::Status started = StartIoThread();
  return started;
}

void CancelOnIoThread(const pplx::cancellation_token_source& source) {
  boost::asio::post(crossplat::threadpool::shared_instance().service(),
                    [source] { source.cancel(); });
}

absl::Status FromException(std::exception_ptr thrown, const Url& url) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const web::http::http_exception& error) {
    const std::string reason = error.error_code() ? error.error_code().message() : "";
    return absl::UnavailableError(
        fmt::format("{}: {}{}{}", url.Origin(), error.what(), reason.empty() ? "" : ": ", reason));
  } catch (const std::exception& error) {
    return absl::UnavailableError(fmt::format("{}: {}", url.Origin(), error.what()));
  }
}

// True if the error shows that the request was not sent completely. This happens with a reused
// connection that the server has closed: the client notices that only when it writes. A server that
// did not receive the whole request did not act on it, so the request may be sent again.
bool WasNeverSent(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         status.message().find("Failed to write request") != absl::string_view::npos;
}

// One request and its response, run on the caller's thread.
class Transfer {
 public:
  Transfer(const Request& request, const Url& url, BodySink* sink, const ClientOptions& options)
      : request_(request),
        url_(url),
        sink_(sink),
        options_(options),
        rate_(options.rate_floor),
        exchange_(std::make_shared<Exchange>()) {}

  absl::StatusOr<Response> Run(http_client& client, std::stop_token stop) {
    absl::Status status = Start(client, options_.user_agent);
    if (status.ok()) {
      status = Pump(stop);
    }
    if (!status.ok()) {
      exchange_->Abandon();
      if (started_) {
        CancelOnIoThread(cancel_);
        exchange_->AwaitDone(kCancelGrace);
      }
      return status;
    }
    return std::move(response_);
  }

  bool HasReadSource() const { return !buffer_.empty(); }

 private:
  absl::Status Start(http_client& client, const std::string& user_agent) {
    try {
      web::http::http_request message(std::string(MethodName(request_.method)));
      message.set_request_uri(web::uri(url_.target));
      message.headers().add("User-Agent", user_agent);
      CW_RETURN_IF_ERROR(SetHeaders(message));
      SetBody(message);
      message.set_response_stream(concurrency::streams::streambuf<uint8_t>(
                                      std::make_shared<BodyBuffer>(exchange_, std::ios_base::out))
                                      .create_ostream());
      Launch(client, message);
      return absl::OkStatus();
    } catch (const web::uri_exception& error) {
      return absl::InvalidArgumentError(fmt::format("url: {}", error.what()));
    } catch (...) {
      return FromException(std::current_exception(), url_);
    }
  }

  absl::Status SetHeaders(web::http::http_request& message) const {
    std::map<std::string, std::string> fields;
    for (const auto& [name, value] : request_.headers) {
      if (value.find_first_of("\r\n") != std::string::npos) {
        return absl::InvalidArgumentError(
            fmt::format("header {}: a value must not contain a line break", name));
      }
      // The library keeps one value per name, and writes it unchanged. For some fields, such as
      // Impersonate-Group, values joined by commas have another meaning than repeated fields.
      const auto [field, is_first] = fields.try_emplace(Lower(name), value);
      if (!is_first) {
        field->second += fmt::format("\r\n{}: {}", name, value);
      }
      message.headers()[name] = field->second;
    }
    return absl::OkStatus();
  }

  void SetBody(web::http::http_request& message) {
    const std::string type = request_.headers.Find("Content-Type").value_or("");
    if (request_.source != nullptr) {
      message.set_body(concurrency::streams::streambuf<uint8_t>(
                           std::make_shared<BodyBuffer>(exchange_, std::ios_base::in))
                           .create_istream(),
                       request_.source->size(), type.empty() ? "application/octet-stream" : type);
    } else if (!request_.body.empty()) {
      message.set_body(std::vector<unsigned char>(request_.body.begin(), request_.body.end()));
      message.headers().set_content_type(type.empty() ? "application/octet-stream" : type);
    } else if (request_.method == Method::kPatch) {
      message.headers().set_content_length(0);
    }
  }

  void Launch(http_client& client, const web::http::http_request& message) {
    const auto fail = [exchange = exchange_, url = url_] {
      exchange->OnDone(FromException(std::current_exception(), url));
    };
    client.request(message, cancel_.get_token())
        .then([exchange = exchange_, fail](const pplx::task<web::http::http_response>& answered) {
          try {
            web::http::http_response response = answered.get();
            exchange->OnHead(response);
            response.content_ready().then(
                [exchange, fail](const pplx::task<web::http::http_response>& all) {
                  try {
                    all.get();
                    exchange->OnDone(absl::OkStatus());
                  } catch (...) {
                    fail();
                  }
                });
          } catch (...) {
            fail();
          }
        });
    started_ = true;
  }

  absl::Status Pump(std::stop_token stop) {
    for (;;) {
      const MonoTime begin = options_.clock->Monotonic();
      const Exchange::Event event = exchange_->Await(request_.inactivity, stop);
      if (!rate_.Add(options_.clock->Monotonic() - begin, std::exchange(transferred_, 0)) &&
          event != Exchange::Event::kDone) {
        return absl::DeadlineExceededError(
            fmt::format("{}: fewer than {} bytes were transferred in {}", url_.Origin(),
                        options_.rate_floor.bytes_min, FormatDuration(options_.rate_floor.window)));
      }
      switch (event) {
        case Exchange::Event::kStopped:
          return absl::CancelledError("stopped");
        case Exchange::Event::kInactivity:
          return absl::DeadlineExceededError(fmt::format("{}: no byte was transferred for {}",
                                                         url_.Origin(),
                                                         FormatDuration(request_.inactivity)));
        case Exchange::Event::kUpload:
          CW_RETURN_IF_ERROR(Upload());
          break;
        case Exchange::Event::kHead:
          CW_RETURN_IF_ERROR(Begin());
          break;
        case Exchange::Event::kBytes:
          CW_RETURN_IF_ERROR(Deliver(exchange_->TakeBytes()));
          break;
        case Exchange::Event::kDone:
          return Finish();
      }
    }
  }

  absl::Status Upload() {
    buffer_.resize(exchange_->wanted());
    CW_ASSIGN_OR_RETURN(const size_t count, request_.source->Read(buffer_));
    if (count == 0) {
      return absl::InvalidArgumentError("body: the source ended before its announced size");
    }
    exchange_->Supply(std::string_view(buffer_.data(), count));
    transferred_ += static_cast<int64_t>(count);
    return absl::OkStatus();
  }

  absl::Status Begin() {
    response_ = exchange_->TakeHead();
    has_sink_ = sink_ != nullptr && response_.status / 100 == 2;
    return has_sink_ ? sink_->Begin(response_) : absl::OkStatus();
  }

  absl::Status Deliver(const std::string& bytes) {
    transferred_ += std::ssize(bytes);
    if (has_sink_) {
      return sink_->Write(bytes);
    }
    const size_t capacity = request_.body_bytes_max - response_.body.size();
    // With a sink, this is the body of an error response, which may be truncated. Without a sink,
    // the caller gets the whole body or an error.
    if (bytes.size() > capacity && sink_ == nullptr) {
      return absl::ResourceExhaustedError(fmt::format("{}: the response is larger than {} bytes",
                                                      url_.Origin(), request_.body_bytes_max));
    }
    response_.body.append(bytes, 0, std::min(capacity, bytes.size()));
    return absl::OkStatus();
  }

  absl::Status Finish() { return exchange_->result(); }

  const Request& request_;
  const Url& url_;
  BodySink* sink_;
  const ClientOptions& options_;
  RateFloor rate_;
  int64_t transferred_ = 0;  // bytes that rate_ does not know yet
  std::shared_ptr<Exchange> exchange_;
  pplx::cancellation_token_source cancel_;
  std::vector<char> buffer_;
  Response response_;
  bool has_sink_ = false;
  bool started_ = false;
};

class CpprestClient final : public Client {
 public:
  CpprestClient(ClientOptions options, std::shared_ptr<TlsMaterial> tls, ProxyRules proxies)
      : options_(std::move(options)), tls_(std::move(tls)), proxies_(std::move(proxies)) {}

  absl::StatusOr<Response> Send(const Request& request, std::stop_token stop) override {
    return Run(request, nullptr, stop);
  }

  absl::StatusOr<Response> Stream(const Request& request, BodySink& sink,
                                  std::stop_token stop) override {
    return Run(request, &sink, stop);
  }

 private:
  absl::StatusOr<Response> Run(const Request& request, BodySink* sink, std::stop_token stop) {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped");
    }
    CW_ASSIGN_OR_RETURN(const Url url, Url::Parse(request.url));
    if (url.scheme == "http" && !IsLoopback(url.host) &&
        std::find(options_.plain_http_hosts.begin(), options_.plain_http_hosts.end(), url.host) ==
            options_.plain_http_hosts.end()) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: plain http is allowed only for loopback and configured hosts: use https, or add the "
          "host to those that may use plain http",
          url.Origin()));
    }
    CW_ASSIGN_OR_RETURN(http_client client, ClientOf(url));
    for (int stale = 0;; ++stale) {
      Transfer transfer(request, url, sink, options_);
      absl::StatusOr<Response> response = transfer.Run(client, stop);
      if (!WasNeverSent(response.status()) || transfer.HasReadSource() ||
          stale == kStaleConnectionsMax) {
        return response;
      }
    }
  }

  absl::StatusOr<http_client> ClientOf(const Url& url) {
    const std::string origin = url.Origin();
    std::lock_guard lock(mutex_);
    if (const auto found = clients_.find(origin); found != clients_.end()) {
      return found->second;
    }
    if (clients_.size() >= kOriginsMax) {
      // Free all clients: redirects may have led to many origins. A running transfer keeps its
      // client.
      clients_.clear();
    }
    try {
      return clients_.emplace(origin, http_client(web::uri(origin), Config(url))).first->second;
    } catch (...) {
      return FromException(std::current_exception(), url);
    }
  }

  http_client_config Config(const Url& url) const {
    http_client_config config;
    if (const auto proxy = proxies_.For(url); proxy.has_value()) {
      config.set_proxy(web::web_proxy(web::uri(proxy->Origin())));
    }
    config.set_timeout(kLibraryTimeout);
    config.set_chunksize(kSocketReadBytes);
    config.set_max_redirects(0);
    config.set_ssl_context_callback([tls = tls_](boost::asio::ssl::context& context) {
      if (const absl::Status status = tls->Configure(context.native_handle()); !status.ok()) {
        throw std::runtime_error(Message(status));
      }
    });
    return config;
  }

  const ClientOptions options_;
  std::shared_ptr<TlsMaterial> tls_;
  const ProxyRules proxies_;
  std::mutex mutex_;
  std::map<std::string, http_client> clients_;
};

}  // namespace

void PrepareProcess() {
  // Connections trust exactly the authorities of TlsMaterial. These variables prevent OpenSSL from
  // also reading the system's authorities for every connection.
  setenv("SSL_CERT_FILE", "/dev/null", 1);
  setenv("SSL_CERT_DIR", "/nonexistent", 1);
  EnsureIoThread().IgnoreError();  // MakeClient() returns the error
}

absl::StatusOr<std::unique_ptr<Client>> MakeClient(const ClientOptions& options) {
  auto tls = std::make_shared<TlsMaterial>(options.tls);
  CW_RETURN_IF_ERROR(tls->Load());
  CW_ASSIGN_OR_RETURN(ProxyRules proxies, ProxyRules::Make(options.proxy));
  CW_RETURN_IF_ERROR(EnsureIoThread());
  return std::make_unique<CpprestClient>(options, std::move(tls), std::move(proxies));
}

}  // namespace cachewarm::http
