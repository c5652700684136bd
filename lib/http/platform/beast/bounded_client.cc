// SPDX-License-Identifier: Apache-2.0
#include "lib/http/bounded_client.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/platform/beast/connection.h"
#include "lib/http/platform/beast/response_parser.h"
#include "lib/http/request_head.h"
#include "lib/http/text/url.h"

namespace cachewarm::http {
namespace {

namespace beast = boost::beast;
using boost::asio::ip::tcp;

constexpr size_t kReadBytes = 16U << 10U;
constexpr size_t kUploadBytes = 64U << 10U;
constexpr size_t kChunkHeadBytesMax = 32U << 10U;
// Length of the shortest possible chunk, "0\r\n\r\n". An incomplete chunk header is parsed again
// only when this many bytes are buffered, because Beast 1.74 asserts that.
constexpr size_t kChunkBytesMin = 5;

// One request and its response, for one call of Run().
class Transfer {
 public:
  Transfer(const BoundedClientOptions& options, const Request& request, BodySink* sink,
           std::stop_token stop)
      : options_(options),
        request_(request),
        sink_(sink),
        connection_(options.total, std::move(stop)) {}

  absl::StatusOr<Response> Run(const Url& url, const tcp::endpoint& peer) {
    origin_ = url.Origin();
    CW_ASSIGN_OR_RETURN(const std::string head, RequestHead(request_, url, options_.user_agent));
    CW_RETURN_IF_ERROR(Annotate(Connect(peer), origin_));
    CW_RETURN_IF_ERROR(Write(head));
    CW_RETURN_IF_ERROR(SendBody());
    CW_RETURN_IF_ERROR(TakeHead());
    CW_RETURN_IF_ERROR(TakeBody());
    return std::move(response_);
  }

 private:
  absl::Status Connect(const tcp::endpoint& peer) {
    const Duration whole = std::min(request_.inactivity, options_.total);
    const absl::Status status = connection_.Connect(peer, std::min(options_.connect, whole));
    return absl::IsDeadlineExceeded(status) && options_.connect < whole
               ? absl::UnavailableError(
                     fmt::format("no connection within {}", FormatDuration(options_.connect)))
               : status;
  }

  absl::Status Write(std::string_view bytes) {
    return Annotate(connection_.Write(bytes, request_.inactivity), origin_);
  }

  absl::Status SendBody() {
    if (request_.source == nullptr) {
      return Write(request_.body);
    }
    std::vector<char> bytes(kUploadBytes);
    for (uint64_t left = request_.source->size(); left > 0;) {
      CW_ASSIGN_OR_RETURN(
          const size_t count,
          request_.source->Read(std::span(bytes).first(std::min<uint64_t>(left, kUploadBytes))));
      if (count == 0) {
        return absl::InvalidArgumentError("body: the source ended before its announced size");
      }
      CW_RETURN_IF_ERROR(Write({bytes.data(), count}));
      left -= count;
    }
    return absl::OkStatus();
  }

  absl::Status TakeHead() {
    // No limit with a sink: the sink receives a body of any length, and Deliver() truncates the
    // body of an error response.
    const auto body_bytes_max =
        sink_ == nullptr ? std::optional<uint64_t>(request_.body_bytes_max) : std::nullopt;
    do {
      parser_.emplace(request_.method == Method::kHead, body_bytes_max);
      while (!parser_->is_header_done()) {
        CW_RETURN_IF_ERROR(Annotate(Advance(), origin_));
      }
    } while (IsInterim(parser_->head().status));
    response_ = std::move(parser_->head());
    has_sink_ = sink_ != nullptr && response_.status / 100 == 2;
    return has_sink_ ? sink_->Begin(response_) : absl::OkStatus();
  }

  // No upgrade was requested, so 101 is the final response.
  static bool IsInterim(int status) { return status / 100 == 1 && status != 101; }

  absl::Status TakeBody() {
    while (!parser_->is_done() && !is_full_) {
      CW_RETURN_IF_ERROR(Annotate(Advance(), origin_));
      CW_RETURN_IF_ERROR(Deliver(parser_->piece()));
      parser_->DropPiece();
    }
    return absl::OkStatus();
  }

  absl::Status Deliver(const std::string& bytes) {
    if (has_sink_) {
      return bytes.empty() ? absl::OkStatus() : sink_->Write(bytes);
    }
    const size_t capacity = request_.body_bytes_max - response_.body.size();
    response_.body.append(bytes, 0, capacity);
    is_full_ = sink_ != nullptr && bytes.size() >= capacity;
    return absl::OkStatus();
  }

  // Parses the buffered bytes, or reads more if they are too few.
  absl::Status Advance() {
    if (buffer_.size() >= enough_) {
      const bool was_head = !parser_->is_header_done();
      beast::error_code error;
      const size_t used = parser_->put(buffer_.cdata(), error);
      buffer_.consume(used);
      head_bytes_ += was_head ? used : 0;
      const bool is_short = error == beast::http::error::need_more;
      enough_ = is_short && parser_->is_header_done() ? kChunkBytesMin : 1;
      if (!is_short) {
        return error ? Refusal(error) : CheckHead(0);
      }
    }
    return Fill();
  }

  absl::Status Fill() {
    CW_RETURN_IF_ERROR(CheckHead(buffer_.size()));
    if (buffer_.size() > kChunkHeadBytesMax && parser_->is_header_done()) {
      return absl::UnavailableError("the response is malformed: a chunk header is too long");
    }
    const auto space = buffer_.prepare(kReadBytes);
    CW_ASSIGN_OR_RETURN(const size_t count,
                        connection_.Read(std::span(static_cast<char*>(space.data()), space.size()),
                                         request_.inactivity));
    buffer_.commit(count);
    return count > 0 ? absl::OkStatus() : End();
  }

  // Checks the length of the head. The check of Beast 1.74 is switched off, because a server can
  // evade it: Beast counts from 0 again when a packet ends with the first letter of a header.
  absl::Status CheckHead(size_t unread) const {
    const bool is_open = !parser_->is_header_done();
    return head_bytes_ + (is_open ? unread : 0) > options_.header_bytes_max
               ? absl::ResourceExhaustedError(
                     fmt::format("the headers of the response are larger than {} bytes",
                                 options_.header_bytes_max))
               : absl::OkStatus();
  }

  absl::Status End() {
    if (!parser_->got_some()) {
      return absl::UnavailableError("the server closed the connection without a response");
    }
    beast::error_code error;
    parser_->put_eof(error);
    return error ? absl::UnavailableError("the response was cut short") : absl::OkStatus();
  }

  absl::Status Refusal(beast::error_code error) const {
    return error == beast::http::error::body_limit
               ? absl::ResourceExhaustedError(
                     fmt::format("the response is larger than {} bytes", request_.body_bytes_max))
               : absl::UnavailableError(
                     fmt::format("the response is malformed: {}", error.message()));
  }

  const BoundedClientOptions& options_;
  const Request& request_;
  BodySink* sink_;
  std::string origin_;
  Connection connection_;
  beast::flat_buffer buffer_;
  size_t enough_ = 1;  // number of buffered bytes below which Advance() reads more
  size_t head_bytes_ = 0;
  std::optional<ResponseParser> parser_;
  Response response_;
  bool has_sink_ = false;
  bool is_full_ = false;
};

class BoundedClient final : public Client {
 public:
  BoundedClient(BoundedClientOptions options, boost::asio::ip::address address)
      : options_(std::move(options)), address_(std::move(address)) {}

  absl::StatusOr<Response> Send(const Request& request, std::stop_token stop) override {
    return Run(request, nullptr, std::move(stop));
  }

  absl::StatusOr<Response> Stream(const Request& request, BodySink& sink,
                                  std::stop_token stop) override {
    return Run(request, &sink, std::move(stop));
  }

 private:
  absl::StatusOr<Response> Run(const Request& request, BodySink* sink, std::stop_token stop) const {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped");
    }
    CW_ASSIGN_OR_RETURN(const Url url, Url::Parse(request.url));
    boost::system::error_code error;
    const auto host = boost::asio::ip::make_address(url.host, error);
    if (error || url.scheme != "http" || host != address_) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: this client connects only to {}, by plain http", url.Origin(), options_.address));
    }
    try {
      auto response = Transfer(options_, request, sink, std::move(stop))
                          .Run(url, tcp::endpoint(address_, url.port));
      return response;
    } catch (const std::exception& thrown) {  // out of memory or file descriptors
      return absl::UnavailableError(fmt::format("{}: {}", url.Origin(), thrown.what()));
    }
  }

  const BoundedClientOptions options_;
  const boost::asio::ip::address address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> MakeBoundedClient(BoundedClientOptions options) {
  boost::system::error_code error;
  auto address = boost::asio::ip::make_address(options.address, error);
  if (error) {
    return absl::InvalidArgumentError(
        fmt::format("address: \"{}\" is not an IP address", options.address));
  }
  return std::make_unique<BoundedClient>(std::move(options), std::move(address));
}

}  // namespace cachewarm::http
