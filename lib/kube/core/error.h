// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"
#include "lib/http/text/retry_after.h"

namespace cachewarm::kube {

// An error response of the API server: a metav1.Status or a bare HTTP code.
struct ApiError {
  int code = 0;
  std::string reason;   // "AlreadyExists", "Expired", ...
  std::string message;  // human-readable
  std::optional<Duration> retry_after;
};

// Converts an error to a status. The HTTP code determines the status code (CodeOfHttpStatus()),
// except that the reasons Expired and Gone give OUT_OF_RANGE, and a 409 with the reason
// AlreadyExists gives ALREADY_EXISTS. Never OK: an error with a success code is UNKNOWN. The
// functions below read the HTTP code and the reason back from the status; RetryAfterOf() of
// lib/http/text reads the wait that the server requested.
absl::Status ToStatus(const ApiError& error);

// Converts a metav1.Status. `http_code` is used if the metav1.Status has no error code.
ApiError ParseApiError(const codec::Json& status, int http_code);

// Returns true if the status is RESOURCE_EXHAUSTED because the response exceeded a local limit, and
// not because of a 429.
bool IsTooLong(const absl::Status& status);

// Returns the HTTP code of the response; 0 if the status is not from a response of the API server.
int HttpCodeOf(const absl::Status& status);
// Returns metav1.Status.reason; empty if there is none.
std::string ReasonOf(const absl::Status& status);

}  // namespace cachewarm::kube
