// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/http_status.h"

namespace cachewarm::http {

absl::StatusCode CodeOfHttpStatus(int status) {
  if (status >= 200 && status < 400) {
    return absl::StatusCode::kOk;
  }
  switch (status) {
    case 400:
    case 411:
    case 413:
    case 414:
    case 415:
    case 422:
    case 431:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 409:
    case 412:
      return absl::StatusCode::kAborted;
    case 410:
    case 416:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 507:
      return absl::StatusCode::kResourceExhausted;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 408:
    case 500:
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace cachewarm::http
