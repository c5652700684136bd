// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/beast/connection.h"

#include <boost/asio/buffer.hpp>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::http {

namespace asio = boost::asio;

Connection::Connection(Duration total, std::stop_token stop)
    : total_(total),
      stop_(std::move(stop)),
      busy_(io_.get_executor()),
      socket_(io_),
      end_(io_, total),
      // The callback runs on the thread that requests the stop, and must not throw. io_.stop() may
      // be called on any thread. Any other call would have to be posted to io_, and post() can
      // throw.
      stopped_(stop_, [this] { io_.stop(); }) {
  end_.async_wait([this](const boost::system::error_code& error) { is_over_ = !error; });
}

absl::Status Connection::Connect(const asio::ip::tcp::endpoint& peer, Duration limit) {
  socket_.async_connect(
      peer, [this](const boost::system::error_code& error) { step_ = Step{.error = error}; });
  CW_ASSIGN_OR_RETURN(const Step step, Await(limit));
  return step.error ? absl::UnavailableError(step.error.message()) : absl::OkStatus();
}

absl::Status Connection::Write(std::string_view bytes, Duration inactivity) {
  while (!bytes.empty()) {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             [this](const boost::system::error_code& error, size_t count) {
                               step_ = Step{.error = error, .count = count};
                             });
    CW_ASSIGN_OR_RETURN(const Step step, Await(inactivity));
    if (step.error) {
      return absl::UnavailableError(step.error.message());
    }
    bytes.remove_prefix(step.count);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Connection::Read(std::span<char> out, Duration inactivity) {
  socket_.async_read_some(asio::buffer(out.data(), out.size()),
                          [this](const boost::system::error_code& error, size_t count) {
                            step_ = Step{.error = error, .count = count};
                          });
  CW_ASSIGN_OR_RETURN(const Step step, Await(inactivity));
  if (step.error == asio::error::eof) {
    return 0;
  }
  if (step.error) {
    return absl::UnavailableError(step.error.message());
  }
  return step.count;
}

absl::StatusOr<Connection::Step> Connection::Await(Duration limit) {
  while (!step_.has_value()) {
    if (io_.run_one_for(limit) == 0) {
      return stop_.stop_requested() ? absl::CancelledError("stopped")
                                    : absl::DeadlineExceededError(fmt::format(
                                          "no byte was transferred for {}", FormatDuration(limit)));
    }
    if (is_over_) {
      return absl::DeadlineExceededError(
          fmt::format("no complete response within {}", FormatDuration(total_)));
    }
  }
  return *std::exchange(step_, std::nullopt);
}

}  // namespace cachewarm::http
