// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/error.h"

#include <charconv>

#include "absl/strings/cord.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/http/text/http_status.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr char kCode[] = "cachewarm.io/http-code";
constexpr char kReason[] = "cachewarm.io/reason";
constexpr int64_t kRetryAfterSecondsMax = 3600;

absl::StatusCode CodeFor(const ApiError& error) {
  if (error.reason == "Expired" || error.reason == "Gone") {
    return absl::StatusCode::kOutOfRange;
  }
  if (error.code == 409 && error.reason == "AlreadyExists") {
    return absl::StatusCode::kAlreadyExists;
  }
  const absl::StatusCode code = http::CodeOfHttpStatus(error.code);
  return code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code;
}

int64_t NumberIn(const absl::Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  int64_t number = -1;
  if (payload.has_value()) {
    const std::string text(*payload);
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

}  // namespace

absl::Status ToStatus(const ApiError& error) {
  absl::Status status(CodeFor(error),
                      error.message.empty() ? "the API server gave no message" : error.message);
  status.SetPayload(kCode, absl::Cord(std::to_string(error.code)));
  if (!error.reason.empty()) {
    status.SetPayload(kReason, absl::Cord(error.reason));
  }
  if (error.retry_after.has_value()) {
    http::SetRetryAfter(status, *error.retry_after);
  }
  return status;
}

ApiError ParseApiError(const Json& status, int http_code) {
  ApiError error{.code = http_code,
                 .reason = codec::TextAt(status, {"reason"}),
                 .message = codec::TextAt(status, {"message"}),
                 .retry_after = std::nullopt};
  const int64_t code = codec::IntegerAt(status, {"code"});
  if (code >= 400 && code <= 599) {
    error.code = static_cast<int>(code);
  }
  const int64_t seconds = codec::IntegerAt(status, {"details", "retryAfterSeconds"});
  if (seconds > 0) {
    error.retry_after = std::chrono::seconds(std::min(seconds, kRetryAfterSecondsMax));
  }
  return error;
}

bool IsTooLong(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && HttpCodeOf(status) == 0;
}

int HttpCodeOf(const absl::Status& status) {
  return static_cast<int>(std::max<int64_t>(0, NumberIn(status, kCode)));
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReason);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace cachewarm::kube
