// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "lib/http/client.h"

// What the tests of the client share: a sink and a client. Only for tests.
namespace cachewarm::http::testing {

inline constexpr char kChunkedHead[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

inline std::unique_ptr<Client> NewClient() {
  return *MakeClient({});
}

// Collects; can be told to block in Write() until released.
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

}  // namespace cachewarm::http::testing
