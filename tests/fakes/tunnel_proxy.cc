// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/tunnel_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace cachewarm::fakes {
namespace {

constexpr int kPollMilliseconds = 20;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool IsReadable(int socket) {
  pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, kPollMilliseconds) == 1;
}

}  // namespace

TunnelProxy::TunnelProxy(uint16_t target_port) : target_port_(target_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, generic, size) == 0 && ::listen(listener_, 16) == 0 &&
      ::getsockname(listener_, generic, &size) == 0) {
    port_ = ntohs(address.sin_port);
  }
  acceptor_ = std::jthread([this] { Accept(); });
}

TunnelProxy::~TunnelProxy() {
  stopping_ = true;
  acceptor_.join();
  serving_.clear();
  ::close(listener_);
}

std::string TunnelProxy::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

std::vector<std::string> TunnelProxy::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::vector<std::string> TunnelProxy::first_bytes() const {
  const std::lock_guard lock(mutex_);
  return first_bytes_;
}

void TunnelProxy::Accept() {
  while (!stopping_) {
    if (IsReadable(listener_)) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      serving_.emplace_back([this, client] { Serve(client); });
    }
  }
}

void TunnelProxy::Serve(int client) {
  std::string head;
  std::array<char, 1> byte{};
  while (!stopping_ && head.find("\r\n\r\n") == std::string::npos) {
    if (IsReadable(client)) {
      if (::recv(client, byte.data(), 1, 0) != 1) {
        break;
      }
      head.push_back(byte[0]);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back(head.substr(0, head.find("\r\n")));
  }
  const int target = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_port_);
  if (!head.starts_with("CONNECT ") ||
      ::connect(target, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    SendAll(client, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  } else if (SendAll(client, "HTTP/1.1 200 Connection established\r\n\r\n")) {
    Pump(client, target);
  }
  ::close(target);
  ::close(client);
}

void TunnelProxy::Pump(int client, int target) {
  std::array<char, 16384> bytes{};
  bool first = true;
  while (!stopping_) {
    std::array<pollfd, 2> waiting = {{{.fd = client, .events = POLLIN, .revents = 0},
                                      {.fd = target, .events = POLLIN, .revents = 0}}};
    ::poll(waiting.data(), waiting.size(), kPollMilliseconds);
    for (const size_t from : {size_t{0}, size_t{1}}) {
      if (waiting[from].revents == 0) {
        continue;
      }
      const ssize_t got = ::recv(waiting[from].fd, bytes.data(), bytes.size(), 0);
      if (got <= 0 || !SendAll(waiting[1 - from].fd, {bytes.data(), static_cast<size_t>(got)})) {
        return;
      }
      if (from == 0 && first) {
        first = false;
        const std::lock_guard lock(mutex_);
        first_bytes_.emplace_back(bytes.data(), static_cast<size_t>(got));
      }
    }
  }
}

}  // namespace cachewarm::fakes
