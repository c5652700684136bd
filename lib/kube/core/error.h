// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/retry_after.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::kube {

// What an error answer of the API server says (a metav1.Status or a bare HTTP code).
struct ApiError {
  int code = 0;
  std::string reason;   // "AlreadyExists", "Expired", ...
  std::string message;  // for people
  std::optional<Duration> retry_after;
};

// The absl code that says what to do: that of the HTTP code (lib/base/http_status.h), but
// OUT_OF_RANGE for the reasons Expired and Gone, and ALREADY_EXISTS for a 409 of that reason. Never
// OK: an error with a code of success is UNKNOWN.
// The ApiError travels along and is read back by the functions below and, how long the server asked
// us to wait, by RetryAfterOf() of lib/base.
absl::Status ToStatus(const ApiError& error);

// Reads a metav1.Status; `http_code` where it gives no code of its own.
ApiError ParseApiError(const codec::Json& status, int http_code);

// The answer was longer than we read: RESOURCE_EXHAUSTED, and not by the server's own word (429).
bool IsTooLong(const absl::Status& status);

// HTTP code the server gave; 0 when the status did not come from an answer of the API server.
int HttpCodeOf(const absl::Status& status);
// metav1.Status.reason; empty when there is none.
std::string ReasonOf(const absl::Status& status);

}  // namespace cachewarm::kube
