// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/download/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <regex>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace cachewarm::bench {
namespace {

constexpr size_t kBuffer = 256 << 10;
constexpr std::string_view kLength = "Content-Length: ";

absl::Status Failed(std::string_view what) {
  return absl::UnavailableError(fmt::format("{}: errno {}", what, errno));
}

class Connection {
 public:
  Connection() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(fd_); }

  absl::Status Open(const std::string& host, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
      return absl::InvalidArgumentError(fmt::format("{}: not an IPv4 address", host));
    }
    const auto* const generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    return ::connect(fd_, generic, sizeof(address)) == 0 ? absl::OkStatus() : Failed("connect");
  }

  absl::Status Send(std::string_view text) {
    const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(text.size()) ? absl::OkStatus() : Failed("send");
  }

  // 0 at the end.
  absl::StatusOr<size_t> Receive(std::vector<char>& buffer, size_t from) {
    const ssize_t got = ::recv(fd_, buffer.data() + from, buffer.size() - from, 0);
    if (got < 0) {
      return Failed("recv");
    }
    return static_cast<size_t>(got);
  }

 private:
  int fd_;
};

// Returns the Content-Length of a 200 response.
std::optional<uint64_t> LengthOf(std::string_view head) {
  const size_t at = head.find(kLength);
  if (!head.starts_with("HTTP/1.1 200") || at == std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t length = 0;
  const char* const begin = head.data() + at + kLength.size();
  const auto parsed = std::from_chars(begin, head.data() + head.size(), length);
  return parsed.ec == std::errc() ? std::optional(length) : std::nullopt;
}

absl::StatusOr<uint64_t> ReceiveAnswer(Connection& connection) {
  std::vector<char> buffer(kBuffer);
  size_t filled = 0;
  std::string_view::size_type end = 0;
  do {
    const auto got = connection.Receive(buffer, filled);
    if (!got.ok()) {
      return got.status();
    }
    if (*got == 0 || filled + *got == buffer.size()) {
      return absl::UnavailableError("no end of the answer's head");
    }
    filled += *got;
    end = std::string_view(buffer.data(), filled).find("\r\n\r\n");
  } while (end == std::string_view::npos);
  const auto length = LengthOf({buffer.data(), end + 2});
  if (!length) {
    return absl::UnavailableError(std::string(buffer.data(), end));
  }
  uint64_t received = filled - end - 4;
  while (received < *length) {
    const auto got = connection.Receive(buffer, 0);
    if (!got.ok() || *got == 0) {
      return got.ok() ? absl::UnavailableError("the answer was cut short") : got.status();
    }
    received += *got;
  }
  return received;
}

}  // namespace

absl::StatusOr<uint64_t> DownloadBySocket(const std::string& url) {
  const std::regex form("http://([0-9.]+):([0-9]{1,5})(/[^ ]*)");
  std::smatch parts;
  if (!std::regex_match(url, parts, form)) {
    return absl::InvalidArgumentError(fmt::format("{}: not http://address:port/path", url));
  }
  Connection connection;
  const auto port = static_cast<uint16_t>(std::stoi(parts[2].str()));
  if (absl::Status opened = connection.Open(parts[1].str(), port); !opened.ok()) {
    return opened;
  }
  const absl::Status sent =
      connection.Send(fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n\r\n",
                                  parts[3].str(), parts[1].str(), port));
  if (!sent.ok()) {
    return sent;
  }
  return ReceiveAnswer(connection);
}

}  // namespace cachewarm::bench
