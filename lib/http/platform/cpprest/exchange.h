// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cpprest/http_client.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/http/client.h"

namespace cachewarm::http {

// Passes the bytes of one request and its response between two threads: the I/O thread of
// cpprestsdk ("the library"), and the caller's thread, which runs sink and source. The library may
// keep the object after the caller has left; the object then ignores further bytes.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  enum class Event { kUpload, kHead, kBytes, kDone, kInactivity, kStopped };

  // Methods for the caller's thread.

  // Waits for the next event. kInactivity: no byte was transferred during `inactivity`, which
  // begins with this call and again with every transfer of bytes.
  Event Await(Duration inactivity, std::stop_token stop);
  // After kUpload: returns the number of bytes that the library wants; then call Supply() with at
  // least one byte, or Abandon().
  size_t wanted() const;
  void Supply(std::string_view bytes);
  // After kHead: returns status and headers of the response.
  Response TakeHead();
  // After kBytes: returns the bytes of the body that have arrived.
  std::string TakeBytes();
  // After kDone: returns the result of the request.
  absl::Status result() const;
  // Call when the caller leaves, before cancelling the request. Ends everything that the library
  // still waits for: discards the response and ends the request body early. Neither causes an
  // exception, which would block the library's only thread.
  void Abandon();
  // Blocks until the library has finished with the exchange, at most `limit`.
  void AwaitDone(Duration limit);

  // Methods for the library's thread.

  void OnHead(const web::http::http_response& response);
  void OnDone(absl::Status result);
  // Accepts bytes of the response body. Bytes that cannot be accepted end the exchange with an
  // error, never with an exception or a failing task.
  pplx::task<size_t> Put(const uint8_t* bytes, size_t count);
  pplx::task<size_t> Get(uint8_t* out, size_t count);

 private:
  struct PendingRead {
    uint8_t* out = nullptr;
    size_t count = 0;
    pplx::task_completion_event<size_t> filled;
  };
  bool HasEvent() const;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  bool made_progress_ = false;  // bytes were transferred since the last Await()
  bool abandoned_ = false;
  std::optional<Response> head_;
  bool head_taken_ = false;  // the caller has taken the head; bytes may arrive before that
  std::string arrived_;
  std::optional<std::pair<size_t, pplx::task_completion_event<size_t>>> pending_write_;
  std::optional<PendingRead> pending_read_;
  absl::Status refused_;  // error of Put(); the library's error is in done_
  std::optional<absl::Status> done_;
};

}  // namespace cachewarm::http
