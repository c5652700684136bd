// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/http/bounded_client.h"
#include "lib/http/client.h"

// Shared by the tests of the HTTP clients: both clients, a sink and a listener.
namespace cachewarm::http::testing {

inline constexpr char kChunkedHead[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

inline std::unique_ptr<Client> NewClient() {
  return *MakeClient({});
}

inline std::unique_ptr<Client> NewBoundedClient(BoundedClientOptions options = {}) {
  options.address = "127.0.0.1";
  return *MakeBoundedClient(std::move(options));
}

struct ClientKind {
  const char* name = "";
  std::unique_ptr<Client> (*make)() = nullptr;
};

inline const ClientKind kClientKinds[] = {
    {.name = "kept", .make = NewClient},
    {.name = "bounded", .make = [] { return NewBoundedClient(); }},
};

// The contract of http::Client, tested with each implementation.
class EveryClient : public ::testing::TestWithParam<ClientKind> {
 protected:
  static std::unique_ptr<Client> NewClient() { return GetParam().make(); }
};

// Collects the body. If is_blocked is set, Write() blocks until Release().
class Collector final : public BodySink {
 public:
  absl::Status Begin(const Response& head) override {
    status = head.status;
    return begin_status;
  }
  absl::Status Write(std::string_view bytes) override {
    std::unique_lock lock(mutex);
    body += bytes;
    taken += bytes.size();
    changed.notify_all();
    changed.wait(lock, [this] { return !is_blocked; });
    return write_status;
  }
  void Release() {
    std::lock_guard lock(mutex);
    is_blocked = false;
    changed.notify_all();
  }
  bool AwaitBody(std::string_view wanted) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return body == wanted; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::string body;
  uint64_t taken = 0;
  int status = 0;
  bool is_blocked = false;
  absl::Status begin_status;
  absl::Status write_status;
};

// True once `done` holds; false when `limit` has passed.
template <typename Done>
bool Within(std::chrono::seconds limit, Done done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A listener whose queue is full: further connects wait.
class FullListener {
 public:
  FullListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    sockets_.push_back(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(bind(sockets_[0], generic, length), 0);
    EXPECT_EQ(listen(sockets_[0], 0), 0);
    EXPECT_EQ(getsockname(sockets_[0], generic, &length), 0);
    for (int i = 0; i < 4; ++i) {
      sockets_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      connect(sockets_.back(), generic, length);
    }
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  }
  ~FullListener() {
    for (const int fd : sockets_) {
      close(fd);
    }
  }
  std::string url;

 private:
  std::vector<int> sockets_;
};

}  // namespace cachewarm::http::testing
