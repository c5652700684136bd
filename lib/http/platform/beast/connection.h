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

// A client's end of a TCP connection without a thread: each step blocks its caller until it is
// done, its time or that of the whole is over (DEADLINE_EXCEEDED), or `stop` (CANCELLED, at once).
// After an error there is no further step. The constructor may throw boost::system::system_error.
class Connection {
 public:
  // `total` begins now.
  Connection(Duration total, std::stop_token stop);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;  // closes it

  absl::Status Connect(const boost::asio::ip::tcp::endpoint& peer, Duration limit);
  // All of `bytes`, of which some must move within `inactivity`.
  absl::Status Write(std::string_view bytes, Duration inactivity);
  // At least one byte; 0 when the peer has ended.
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
