// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::kube {

// What an error answer of the API server says (a metav1.Status or a bare HTTP code).
struct ApiError {
  int code = 0;
  std::string reason;   // "AlreadyExists", "Expired", ...
  std::string message;  // for people
  std::optional<Duration> retry_after;
};

// The absl code that says what to do:
//   400 413 415 422  INVALID_ARGUMENT          401  UNAUTHENTICATED     403  PERMISSION_DENIED
//   404              NOT_FOUND                 405 501  UNIMPLEMENTED
//   409 AlreadyExists: ALREADY_EXISTS, other 409  ABORTED
//   410 and reason Expired  OUT_OF_RANGE       429  RESOURCE_EXHAUSTED
//   408 500 502 503  UNAVAILABLE               504  DEADLINE_EXCEEDED
// The ApiError travels along and is read back by the functions below.
absl::Status ToStatus(const ApiError& error);

// Reads a metav1.Status; `http_code` where it gives no code of its own.
ApiError ParseApiError(const codec::Json& status, int http_code);

// HTTP code the server gave; 0 when the status did not come from an answer of the API server.
int HttpCodeOf(const absl::Status& status);
// metav1.Status.reason; empty when there is none.
std::string ReasonOf(const absl::Status& status);
// How long the server asked us to wait (Retry-After or details.retryAfterSeconds).
std::optional<Duration> RetryAfterOf(const absl::Status& status);

}  // namespace cachewarm::kube
