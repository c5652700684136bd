// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/http_client.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fmt/format.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_items.h"
#include "lib/codec/json_value.h"
#include "lib/http/text/retry_after.h"
#include "lib/kube/client/token.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr BackoffPolicy kRetryBackoff{
    .first = Duration(100), .most = Duration(3'000), .factor = 3.0, .jitter = 0.5};
constexpr Duration kRetryAfterMost = std::chrono::seconds(10);

http::Method MethodOf(const std::string& name) {
  for (const http::Method method : {http::Method::kPost, http::Method::kPut, http::Method::kPatch,
                                    http::Method::kDelete, http::Method::kHead}) {
    if (http::MethodName(method) == name) {
      return method;
    }
  }
  return http::Method::kGet;
}

// Converts an error response to a status. The body may not be JSON, for example if a proxy answers,
// or if an aggregated API server is down.
absl::Status ErrorOf(const http::Response& response) {
  ApiError error{.code = response.status, .reason = {}, .message = {}, .retry_after = {}};
  if (const absl::StatusOr<Json> body = codec::ParseJson(response.body);
      body.ok() && body->is_object()) {
    error = ParseApiError(*body, response.status);
  }
  if (error.message.empty()) {
    error.message = Message(http::StatusOf(response));
  }
  if (const std::optional<Duration> wait = http::RetryAfter(response.headers); wait.has_value()) {
    error.retry_after = wait;
  }
  return ToStatus(error);
}

// Passes the bytes of a watch to its decoder.
class WatchSink final : public http::BodySink {
 public:
  WatchSink(const WatchEventHandler& on_event, std::function<void()> on_begin)
      : decoder_(on_event), on_begin_(std::move(on_begin)) {}

  absl::Status Begin(const http::Response&) override {
    on_begin_();
    return absl::OkStatus();
  }
  absl::Status Write(std::string_view bytes) override { return decoder_.Feed(bytes); }
  absl::Status Finish() { return decoder_.Finish(); }

 private:
  WatchDecoder decoder_;
  std::function<void()> on_begin_;
};

class HttpClient final : public Client {
 public:
  HttpClient(http::Client& http, const Clock& clock, Random random, HttpClientOptions options)
      : http_(http),
        clock_(clock),
        random_(std::move(random)),
        options_(std::move(options)),
        tokens_(options_.config, clock) {}

  absl::StatusOr<Json> Do(const Request& request, std::stop_token stop) override {
    return Persist(request, stop, [&]() -> absl::StatusOr<Json> {
      CW_ASSIGN_OR_RETURN(const std::string text, Once(request, stop));
      return RequireJson(request, codec::ParseJson(text, limits()));
    });
  }

  absl::StatusOr<std::string> DoText(const Request& request, std::stop_token stop) override {
    return Persist(request, stop, [&] { return Once(request, stop); });
  }

  absl::StatusOr<Json> DoList(const Request& request, const ItemHandler& on_item,
                              std::stop_token stop) override {
    CW_ASSIGN_OR_RETURN(const std::string text,
                        Persist(request, stop, [&] { return Once(request, stop); }));
    // A malformed response is not retried, because some items have already been passed to on_item.
    return RequireJson(
        request, codec::ParseJsonItems(text, {.list = "items", .unread = "managedFields"}, on_item,
                                       limits()));
  }

  absl::Status Watch(const Request& request, const WatchEventHandler& on_event,
                     std::stop_token stop) override {
    for (bool again = true;; again = false) {
      const std::string token = tokens_.Token();
      const MonoTime began = clock_.Monotonic();
      WatchSink sink(on_event, [&] { Report(request, 200, began); });
      const absl::StatusOr<http::Response> response =
          http_.Stream(ToHttp(request, token, options_.watch_timeout), sink, stop);
      if (!response.ok()) {
        return response.status();
      }
      if (response->status == 200) {
        return sink.Finish();
      }
      Report(request, response->status, began);
      if (response->status != 401 || !again || !tokens_.Reload(token)) {
        return ErrorOf(*response);
      }
    }
  }

 private:
  codec::JsonLimits limits() const {
    return {.bytes_max = options_.response_bytes_max, .prune = true};
  }

  // Treats a truncated or malformed response like a missing response (UNAVAILABLE).
  static absl::StatusOr<Json> RequireJson(const Request& request, absl::StatusOr<Json> body) {
    if (body.ok()) {
      return body;
    }
    return absl::UnavailableError(fmt::format("{} {}: the answer is not JSON: {}", request.verb,
                                              request.path, Message(body.status())));
  }

  // Calls `once`, and again after each failure that may be retried. Returns the last result.
  template <typename Try>
  std::invoke_result_t<Try> Persist(const Request& request, std::stop_token stop,
                                    const Try& once) const {
    for (int attempt = 0;; ++attempt) {
      std::invoke_result_t<Try> answer = once();
      if (answer.ok() || !MayRetry(request, answer.status(), attempt)) {
        return answer;
      }
      if (!SleepFor(clock_, RetryDelay(answer.status(), attempt), stop)) {
        return absl::CancelledError("stopped");
      }
    }
  }

  http::Request ToHttp(const Request& request, const std::string& token, Duration timeout) const {
    http::Request message;
    message.method = MethodOf(request.method);
    message.url =
        options_.config.server + request.path + (request.query.empty() ? "" : "?" + request.query);
    message.headers = options_.config.headers;
    message.headers.Set("Accept", "application/json");
    if (!request.content_type.empty()) {
      message.headers.Set("Content-Type", request.content_type);
    }
    if (!token.empty()) {
      message.headers.Set("Authorization", "Bearer " + token);
    }
    message.body = request.body;
    message.inactivity = timeout;
    message.body_bytes_max = options_.response_bytes_max;
    if (request.response_bytes_max > 0) {
      message.body_bytes_max = std::min(message.body_bytes_max, request.response_bytes_max);
    }
    return message;
  }

  absl::StatusOr<http::Response> SendOnce(const Request& request, const std::string& token,
                                          std::stop_token stop) {
    const MonoTime began = clock_.Monotonic();
    absl::StatusOr<http::Response> response =
        http_.Send(ToHttp(request, token, options_.unary_timeout), stop);
    Report(request, response.ok() ? response->status : 0, began);
    return response;
  }

  // Makes one attempt and returns the body of a successful response.
  absl::StatusOr<std::string> Once(const Request& request, std::stop_token stop) {
    const std::string token = tokens_.Token();
    absl::StatusOr<http::Response> response = SendOnce(request, token, stop);
    if (response.ok() && response->status == 401 && tokens_.Reload(token)) {
      response = SendOnce(request, tokens_.Token(), stop);
    }
    if (!response.ok()) {
      return response.status();
    }
    if (response->status < 200 || response->status > 299) {
      return WithRequest(ErrorOf(*response), request);
    }
    return std::move(response->body);
  }

  // Returns `status` with the request in its message and with the same payloads.
  static absl::Status WithRequest(const absl::Status& status, const Request& request) {
    absl::Status annotated(status.code(),
                           fmt::format("{} {}: {}", request.verb, request.path, Message(status)));
    status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
      annotated.SetPayload(url, payload);
    });
    return annotated;
  }

  bool MayRetry(const Request& request, const absl::Status& status, int attempt) const {
    if (attempt + 1 >= options_.tries) {
      return false;
    }
    // A server that answers 429 did not act on the request, so every verb may be retried.
    if (HttpCodeOf(status) == 429) {
      return http::RetryAfterOf(status).value_or(Duration(0)) <= kRetryAfterMost;
    }
    return request.idempotent && (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
  }

  Duration RetryDelay(const absl::Status& status, int attempt) const {
    const Duration own = BackoffDelay(kRetryBackoff, attempt, random_());
    return std::max(own, http::RetryAfterOf(status).value_or(Duration(0)));
  }

  void Report(const Request& request, int code, MonoTime began) const {
    if (options_.on_request) {
      options_.on_request({.verb = request.verb,
                           .resource = request.resource,
                           .http_code = code,
                           .took = clock_.Monotonic() - began});
    }
  }

  http::Client& http_;
  const Clock& clock_;
  Random random_;
  const HttpClientOptions options_;
  TokenSource tokens_;
};

}  // namespace

std::unique_ptr<Client> MakeHttpClient(http::Client& http, const Clock& clock, Random random,
                                       HttpClientOptions options) {
  return std::make_unique<HttpClient>(http, clock, std::move(random), std::move(options));
}

}  // namespace cachewarm::kube
