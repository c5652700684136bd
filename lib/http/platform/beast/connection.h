// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

namespace cachewarm::http {

// The client side of a TCP connection. Needs no thread of its own: each call blocks until it is
// done, until its time limit or the total time limit has passed (DEADLINE_EXCEEDED), or until
// `stop` is requested (CANCELLED, at once). Make no further call after an error. The constructor
// may throw boost::system::system_error.
class Connection {
 public:
  // `total` limits the time from the construction to the end of the last call.
  Connection(Duration total, std::stop_token stop);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;  // closes the connection

  absl::Status Connect(const boost::asio::ip::tcp::endpoint& peer, Duration limit);
  // Writes all of `bytes`; DEADLINE_EXCEEDED if no byte is transferred for `inactivity`.
  absl::Status Write(std::string_view bytes, Duration inactivity);
  // Reads at least one byte; returns 0 when the peer closed the connection.
  absl::StatusOr<size_t> Read(std::span<char> out, Duration inactivity);

 private:
  struct Step {
    boost::system::error_code error;
    size_t count = 0;
  };
  absl::StatusOr<Step> Await(Duration limit);

  const Duration total_;
  const std::stop_token stop_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer end_;
  bool is_over_ = false;
  std::optional<Step> step_;
  std::stop_callback<std::function<void()>> stopped_;
};

}  // namespace cachewarm::http
