// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

#include "fmt/format.h"

namespace cachewarm {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) {
    return status;
  }
  return absl::Status(status.code(), fmt::format("{}: {}", context, Message(status)));
}

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

std::string Message(const absl::Status& status) {
  if (status.ok()) {
    return "ok";
  }
  std::string message(status.message());
  return message.empty() ? absl::StatusCodeToString(status.code()) : message;
}

}  // namespace cachewarm
