// SPDX-License-Identifier: Apache-2.0
#include "lib/http/platform/cpprest/exchange.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "fmt/format.h"

namespace cachewarm::http {
namespace {

// If at least this many bytes wait for the caller, the socket is not read again until the caller
// has taken them.
constexpr size_t kArrivedBytesMax = 512U << 10U;
// Limit of one Put(). It must be large: the library delivers a whole chunk at once, and servers
// written in Go send a whole response as one chunk. It catches the malformed chunk size "-1", which
// the library parses as SIZE_MAX.
constexpr size_t kPieceBytesMax = 256U << 20U;

absl::Status Append(const uint8_t* bytes, size_t count, std::string& arrived) {
  if (count > kPieceBytesMax) {
    return absl::UnavailableError(
        fmt::format("the response is malformed: a chunk of more than {} bytes", kPieceBytesMax));
  }
  try {
    arrived.append(reinterpret_cast<const char*>(bytes), count);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the response");
  }
}

}  // namespace

bool Exchange::HasEvent() const {
  return pending_read_.has_value() || head_.has_value() || (head_taken_ && !arrived_.empty()) ||
         !refused_.ok() || done_.has_value();
}

Exchange::Event Exchange::Await(Duration inactivity, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  do {
    made_progress_ = false;
    wake_.wait_for(lock, stop, inactivity, [&] { return made_progress_ || HasEvent(); });
  } while (made_progress_ && !HasEvent() && !stop.stop_requested());
  if (stop.stop_requested()) {
    return Event::kStopped;
  }
  if (head_.has_value()) {
    return Event::kHead;
  }
  if (head_taken_ && !arrived_.empty()) {
    return Event::kBytes;
  }
  if (!refused_.ok() || done_.has_value()) {
    return Event::kDone;
  }
  return pending_read_.has_value() ? Event::kUpload : Event::kInactivity;
}

size_t Exchange::wanted() const {
  std::lock_guard lock(mutex_);
  return pending_read_.has_value() ? pending_read_->count : 0;
}

void Exchange::Supply(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (!pending_read_.has_value()) {
    return;
  }
  PendingRead read = std::move(*pending_read_);
  pending_read_.reset();
  lock.unlock();
  // The library keeps `out` alive until `filled` is set.
  const size_t count = std::min(bytes.size(), read.count);
  std::memcpy(read.out, bytes.data(), count);
  read.filled.set(count);
}

Response Exchange::TakeHead() {
  std::lock_guard lock(mutex_);
  Response head = std::move(*head_);
  head_.reset();
  head_taken_ = true;
  return head;
}

std::string Exchange::TakeBytes() {
  std::unique_lock lock(mutex_);
  std::string bytes = std::exchange(arrived_, std::string());
  if (!refused_.ok()) {
    return bytes;
  }
  auto write = std::exchange(pending_write_, std::nullopt);
  lock.unlock();
  if (write.has_value()) {
    write->second.set(write->first);
  }
  return bytes;
}

absl::Status Exchange::result() const {
  std::lock_guard lock(mutex_);
  return refused_.ok() ? done_.value_or(absl::OkStatus()) : refused_;
}

void Exchange::Abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  arrived_.clear();
  auto write = std::exchange(pending_write_, std::nullopt);
  auto read = std::exchange(pending_read_, std::nullopt);
  lock.unlock();
  if (write.has_value()) {
    write->second.set(write->first);
  }
  if (read.has_value()) {
    read->filled.set(0);
  }
}

void Exchange::AwaitDone(Duration limit) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, limit, [&] { return done_.has_value(); });
}

void Exchange::OnHead(const web::http::http_response& response) {
  Response head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers()) {
    head.headers.Add(name, value);
  }
  std::lock_guard lock(mutex_);
  head_ = std::move(head);
  wake_.notify_all();
}

void Exchange::OnDone(absl::Status result) {
  std::lock_guard lock(mutex_);
  if (!done_.has_value()) {
    done_ = std::move(result);
  }
  wake_.notify_all();
}

pplx::task<size_t> Exchange::Put(const uint8_t* bytes, size_t count) {
  std::lock_guard lock(mutex_);
  if (abandoned_) {
    return pplx::task_from_result(count);
  }
  refused_ = Append(bytes, count, arrived_);
  made_progress_ = true;
  wake_.notify_all();
  if (refused_.ok() && arrived_.size() < kArrivedBytesMax) {
    return pplx::task_from_result(count);
  }
  // The task for rejected bytes stays pending until the caller abandons the exchange: a failing
  // task would block the library's only thread (docs/design/0005-cancelling-in-cpprestsdk.md).
  pending_write_.emplace(count, pplx::task_completion_event<size_t>());
  return pplx::create_task(pending_write_->second);
}

pplx::task<size_t> Exchange::Get(uint8_t* out, size_t count) {
  std::lock_guard lock(mutex_);
  if (abandoned_) {
    return pplx::task_from_result<size_t>(0);
  }
  pending_read_ = PendingRead{.out = out, .count = count, .filled = {}};
  made_progress_ = true;
  wake_.notify_all();
  return pplx::create_task(pending_read_->filled);
}

}  // namespace cachewarm::http
