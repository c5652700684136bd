// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/http/client.h"

namespace cachewarm::http {

// Parses one response incrementally (RFC 9112). Stops after the head and after each piece of the
// body.
class ResponseParser final : public boost::beast::http::basic_parser<false> {
 public:
  // `body_bytes_max` limits the body, not counting chunk framing; nullopt: no limit.
  ResponseParser(bool is_head_request, std::optional<uint64_t> body_bytes_max) {
    skip(is_head_request);
    // For no limit, use UINT64_MAX instead of boost::none: in Beast 1.74 every length is greater
    // than boost::none.
    body_limit(body_bytes_max.value_or(UINT64_MAX));
    header_limit(UINT32_MAX);
  }

  // Returns status and headers; they are complete once is_header_done(). Trailers are not included.
  Response& head() { return head_; }
  // Returns the piece of the body that the last put() parsed; may be empty.
  const std::string& piece() const { return piece_; }
  void DropPiece() { piece_.clear(); }

 private:
  using ErrorCode = boost::beast::error_code;
  using StringView = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb, StringView, StringView, int, ErrorCode&) override {
  }
  void on_response_impl(int status, StringView, int, ErrorCode&) override { head_.status = status; }
  void on_field_impl(boost::beast::http::field, StringView name, StringView value,
                     ErrorCode&) override {
    if (!is_whole_) {
      head_.headers.Add({name.data(), name.size()}, {value.data(), value.size()});
    }
  }
  void on_header_impl(ErrorCode&) override { is_whole_ = true; }
  void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
  size_t on_body_impl(StringView bytes, ErrorCode&) override {
    piece_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, StringView, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, StringView bytes, ErrorCode& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(ErrorCode&) override {}

  Response head_;
  bool is_whole_ = false;  // the head is complete: further fields are trailers
  std::string piece_;
};

}  // namespace cachewarm::http
