// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/beast/session.h"

#include <boost/asio/dispatch.hpp>
#include <exception>
#include <utility>

namespace cachewarm::http {
namespace {

namespace beast = boost::beast;
using beast::http::field;
using beast::http::status;

std::string Text(beast::string_view text) {
  return {text.data(), text.size()};
}

status RefusalOf(beast::error_code error) {
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

}  // namespace

void Session::Run() {
  boost::asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    if (!self->closing_) {
      self->AwaitRequest();
    }
  });
}

void Session::Close() {
  boost::asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    self->closing_ = true;
    if (self->idle_) {
      self->End();
    }
  });
}

void Session::AwaitRequest() {
  idle_ = true;
  if (buffer_.size() > 0) {
    return ReadRequest();  // the next one came along with the last
  }
  stream_.expires_after(options_.idle_timeout);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](beast::error_code error, size_t count) {
                            if (error) {
                              return self->End();
                            }
                            self->buffer_.commit(count);
                            self->ReadRequest();
                          });
}

void Session::ReadRequest() {
  idle_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(options_.header_bytes_max));
  parser_->body_limit(options_.body_bytes_max);
  stream_.expires_after(options_.request_timeout);
  beast::http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](beast::error_code error, size_t) { self->OnRequest(error); });
}

void Session::OnRequest(beast::error_code error) {
  if (error) {
    return IsMalformed(error) && error != beast::http::error::end_of_stream &&
                   error != beast::http::error::partial_message
               ? Refuse(RefusalOf(error))
               : End();
  }
  const auto& request = parser_->get();
  const bool keep_alive = request.keep_alive() && !closing_;
  Write(Handle(request), request.method() == beast::http::verb::head, keep_alive);
}

void Session::Refuse(status refusal) {
  ServerResponse response;
  response.status = static_cast<int>(refusal);
  response.body = Text(beast::http::obsolete_reason(refusal)) + "\n";
  Write(response, false, false);
}

ServerResponse Session::Handle(const Parser::value_type& message) const {
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

void Session::Write(const ServerResponse& response, bool is_head, bool keep_alive) {
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
  beast::http::async_write(
      stream_, answer_, [self = shared_from_this(), keep_alive](beast::error_code error, size_t) {
        if (error || !keep_alive || self->closing_) {
          return self->End();
        }
        self->AwaitRequest();
      });
}

void Session::End() {
  beast::error_code ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace cachewarm::http
