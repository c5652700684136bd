// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/client.h"

namespace cachewarm::fakes {

// An http::Client that answers from a script: one handler per request, in order; after the end of
// the script `otherwise` answers, or UNAVAILABLE. Thread-safe. Remembers every request; the bytes
// of a source are drained into its body.
class FakeHttpClient final : public http::Client {
 public:
  using Handler = std::function<absl::StatusOr<http::Response>(const http::Request&)>;

  FakeHttpClient& Then(Handler handler) {
    std::lock_guard lock(mutex_);
    script_.push_back(std::move(handler));
    return *this;
  }
  FakeHttpClient& ThenRespond(int status, std::string body, http::Headers headers = {}) {
    return Then([=](const http::Request&) {
      return http::Response{.status = status, .headers = headers, .body = body};
    });
  }
  FakeHttpClient& ThenFail(absl::Status status) {
    return Then([=](const http::Request&) { return status; });
  }
  void Otherwise(Handler handler) {
    std::lock_guard lock(mutex_);
    otherwise_ = std::move(handler);
  }

  std::vector<http::Request> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  absl::StatusOr<http::Response> Send(const http::Request& request, std::stop_token stop) override {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped");
    }
    http::Request seen = request;
    if (absl::Status drained = Drain(seen); !drained.ok()) {
      return drained;
    }
    Handler handler = Note(seen);
    return handler ? handler(seen) : absl::UnavailableError("the script is over");
  }

  absl::StatusOr<http::Response> Stream(const http::Request& request, http::BodySink& sink,
                                        std::stop_token stop) override {
    absl::StatusOr<http::Response> response = Send(request, stop);
    if (!response.ok() || response->status / 100 != 2) {
      return response;
    }
    const std::string body = std::exchange(response->body, "");
    if (absl::Status begun = sink.Begin(*response); !begun.ok()) {
      return begun;
    }
    if (absl::Status written = body.empty() ? absl::OkStatus() : sink.Write(body); !written.ok()) {
      return written;
    }
    return response;
  }

 private:
  static absl::Status Drain(http::Request& request) {
    char bytes[4096];
    while (request.source != nullptr) {
      absl::StatusOr<size_t> count = request.source->Read(bytes);
      if (!count.ok() || *count == 0) {
        request.source = nullptr;
        return count.status();
      }
      request.body.append(bytes, *count);
    }
    return absl::OkStatus();
  }

  Handler Note(const http::Request& request) {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (script_.empty()) {
      return otherwise_;
    }
    Handler handler = std::move(script_.front());
    script_.pop_front();
    return handler;
  }

  mutable std::mutex mutex_;
  std::deque<Handler> script_;
  Handler otherwise_;
  std::vector<http::Request> requests_;
};

}  // namespace cachewarm::fakes
