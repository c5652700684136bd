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

// One request and its answer between two worlds: the library's I/O thread puts what arrives and
// takes what is to be sent, the caller's thread does all the work of sink and source. The library
// may hold on to it after the caller has gone; then it takes nothing more.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  enum class Turn { kUpload, kHead, kBytes, kDone, kSilence, kStopped };

  // For the caller's thread.

  // What to do next. kSilence: nothing moved for `inactivity` since the last call of Await().
  Turn Await(Duration inactivity, std::stop_token stop);
  // After kUpload: how many bytes are wanted, then the bytes (at least one) or the error.
  size_t wanted() const;
  void Supply(std::string_view bytes);
  // After kHead.
  Response TakeHead();
  // After kBytes.
  std::string TakeBytes();
  // After kDone.
  absl::Status result() const;
  // The caller is leaving and cancels next: whatever the library still waits for ends now. Answers
  // are thrown away and a request's body ends short, both without an exception: for that the
  // library would block its only thread until another one had closed the stream.
  void Abandon();
  // Blocks until the library is through with it, at most `limit`.
  void AwaitDone(Duration limit);

  // For the library's thread.

  void OnHead(const web::http::http_response& response);
  void OnDone(absl::Status result);
  // What it cannot take ends the exchange with an error; no exception, and no task that fails.
  pplx::task<size_t> Put(const uint8_t* bytes, size_t count);
  pplx::task<size_t> Get(uint8_t* out, size_t count);

 private:
  struct Wish {
    uint8_t* out = nullptr;
    size_t count = 0;
    pplx::task_completion_event<size_t> filled;
  };
  bool IsEventful() const;

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  bool stirred_ = false;  // something moved since Await() looked last
  bool abandoned_ = false;
  std::optional<Response> head_;
  bool head_taken_ = false;  // bytes can be there before the head was reported
  std::string arrived_;
  std::optional<std::pair<size_t, pplx::task_completion_event<size_t>>> held_back_;
  std::optional<Wish> wish_;
  absl::Status refused_;  // by Put(); done_ is the library's
  std::optional<absl::Status> done_;
};

}  // namespace cachewarm::http
