// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lib/http/client.h"

namespace cachewarm::bundle {

// Wraps a real client and breaks the connection of selected requests.
class BrokenClient : public http::Client {
 public:
  enum class Break { kNot, kBeforeSending, kHalfWay, kAfterTheAnswer };
  using Decide = std::function<Break(const http::Request&)>;

  BrokenClient(std::unique_ptr<http::Client> client, Decide decide)
      : client_(std::move(client)), decide_(std::move(decide)) {}

  absl::StatusOr<http::Response> Send(const http::Request& request, std::stop_token stop) override {
    switch (decide_(request)) {
      case Break::kNot:
        return client_->Send(request, stop);
      case Break::kBeforeSending:
        return absl::UnavailableError("connection refused");
      case Break::kHalfWay: {
        Half half(request.body);
        http::Request cut = request;
        cut.body.clear();
        cut.source = &half;
        return client_->Send(cut, stop);
      }
      case Break::kAfterTheAnswer:
        client_->Send(request, stop).status().IgnoreError();
        return absl::UnavailableError("connection reset");
    }
    return absl::InternalError("no such break");
  }
  absl::StatusOr<http::Response> Stream(const http::Request& request, http::BodySink& sink,
                                        std::stop_token stop) override {
    return client_->Stream(request, sink, stop);
  }

 private:
  // Announces a whole body, sends its first half and then fails.
  class Half : public http::BodySource {
   public:
    explicit Half(const std::string& body) : body_(body) {}
    absl::StatusOr<size_t> Read(std::span<char> out) override {
      const size_t half = body_.size() / 2;
      if (read_ == half) {
        return absl::UnavailableError("connection reset");
      }
      const size_t count = std::min(out.size(), half - read_);
      body_.copy(out.data(), count, read_);
      read_ += count;
      return count;
    }
    uint64_t size() const override { return body_.size(); }

   private:
    const std::string& body_;
    size_t read_ = 0;
  };

  const std::unique_ptr<http::Client> client_;
  const Decide decide_;
};

}  // namespace cachewarm::bundle
