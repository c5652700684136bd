// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/raw_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "fmt/format.h"

namespace cachewarm::fakes {
namespace {

constexpr int kPollMillis = 20;

class Connection final : public RawConnection {
 public:
  Connection(int fd, SSL_CTX* tls, std::stop_token stop) : fd_(fd), stop_(std::move(stop)) {
    if (tls != nullptr) {
      ssl_ = SSL_new(tls);
      SSL_set_fd(ssl_, fd_);
      is_open_ = Retry([this] { return SSL_accept(ssl_); }) == 1;
    }
  }
  ~Connection() override {
    if (ssl_ != nullptr) {
      SSL_shutdown(ssl_);
      SSL_free(ssl_);
    }
    close(fd_);
  }

  std::string ReadRequest() override {
    while (is_open_) {
      const size_t head = buffer_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t whole = head + 4 + BodyBytes(buffer_.substr(0, head));
        if (buffer_.size() >= whole) {
          std::string request = buffer_.substr(0, whole);
          buffer_.erase(0, whole);
          return request;
        }
      }
      Fill();
    }
    return "";
  }

  void Write(std::string_view bytes) override {
    while (is_open_ && !bytes.empty()) {
      const auto count = Retry([&] {
        const size_t piece = std::min<size_t>(bytes.size(), 64U << 10U);
        return ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(piece))
                               : static_cast<int>(send(fd_, bytes.data(), piece, MSG_NOSIGNAL));
      });
      if (count <= 0) {
        is_open_ = false;
        return;
      }
      written_ += static_cast<uint64_t>(count);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  uint64_t written() const override { return written_; }

  void BlockUntilStop() override {
    while (!stop_.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kPollMillis));
    }
  }

  bool AwaitPeerClose() override {
    while (is_open_ && !stop_.stop_requested()) {
      Fill();
      buffer_.clear();
    }
    return !stop_.stop_requested();
  }

  void Reset() override {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    is_open_ = false;
  }

 private:
  static size_t BodyBytes(std::string head) {
    for (char& c : head) {
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    const size_t at = head.find("content-length:");
    return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 15, nullptr, 10);
  }

  void Fill() {
    char bytes[16384];
    const auto count = Retry([&] {
      return ssl_ != nullptr ? SSL_read(ssl_, bytes, sizeof bytes)
                             : static_cast<int>(recv(fd_, bytes, sizeof bytes, 0));
    });
    if (count <= 0) {
      is_open_ = false;
    } else {
      buffer_.append(bytes, static_cast<size_t>(count));
    }
  }

  // The socket is non-blocking, so that stop requests are checked.
  template <typename Call>
  int Retry(Call call) {
    for (;;) {
      errno = 0;
      const int result = call();
      const bool again =
          ssl_ != nullptr ? WantsMore(result) : result < 0 && (errno == EAGAIN || errno == EINTR);
      if (!again || stop_.stop_requested()) {
        return again ? -1 : result;
      }
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      poll(&ready, 1, kPollMillis);
    }
  }

  bool WantsMore(int result) const {
    const int error = SSL_get_error(ssl_, result);
    return result <= 0 && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE);
  }

  int fd_;
  std::stop_token stop_;
  SSL* ssl_ = nullptr;
  bool is_open_ = true;
  std::string buffer_;
  std::atomic<uint64_t> written_{0};
};

SSL_CTX* MakeContext(const RawServerOptions& options) {
  if (options.certificate_file.empty()) {
    return nullptr;
  }
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error("the server's certificate or key cannot be read");
  }
  if (!options.client_ca_file.empty()) {
    SSL_CTX_load_verify_locations(context, options.client_ca_file.c_str(), nullptr);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

}  // namespace

struct RawServer::State {
  Script script;
  SSL_CTX* tls = nullptr;
  int listener = -1;
  uint16_t port = 0;
  std::atomic<int> connections{0};
  std::stop_source stop;
  std::mutex mutex;
  std::vector<std::jthread> scripts;
  std::jthread acceptor;

  void Accept() {
    while (!stop.stop_requested()) {
      pollfd ready{.fd = listener, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, kPollMillis) <= 0) {
        continue;
      }
      const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        continue;
      }
      const int number = connections++;
      std::lock_guard lock(mutex);
      scripts.emplace_back([this, fd, number] {
        Connection connection(fd, tls, stop.get_token());
        script(connection, number);
      });
    }
  }
};

RawServer::RawServer(Script script, const RawServerOptions& options)
    : state_(std::make_unique<State>()) {
  // OpenSSL writes without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  state_->script = std::move(script);
  state_->tls = MakeContext(options);
  state_->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (options.receive_buffer_bytes > 0) {
    setsockopt(state_->listener, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer_bytes, sizeof(int));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(state_->listener, generic, length) != 0 || listen(state_->listener, 16) != 0 ||
      getsockname(state_->listener, generic, &length) != 0) {
    throw std::runtime_error("cannot listen on loopback");
  }
  state_->port = ntohs(address.sin_port);
  state_->acceptor = std::jthread([state = state_.get()] { state->Accept(); });
}

RawServer::~RawServer() {
  state_->stop.request_stop();
  state_->acceptor.join();
  state_->scripts.clear();
  close(state_->listener);
  SSL_CTX_free(state_->tls);
}

uint16_t RawServer::port() const {
  return state_->port;
}
int RawServer::connections() const {
  return state_->connections;
}

std::string RawServer::Url(std::string_view target) const {
  return fmt::format("{}://127.0.0.1:{}{}", state_->tls != nullptr ? "https" : "http", state_->port,
                     target);
}

std::string RawResponse(int status, std::string_view body, std::string_view headers) {
  return fmt::format("HTTP/1.1 {} Scripted\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                     headers, body);
}

std::string RawChunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace cachewarm::fakes
