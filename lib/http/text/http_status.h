// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace cachewarm::http {

// Maps an HTTP status (RFC 9110, RFC 6585) to the code that a retry loop needs (lib/base/status.h):
//   2xx 3xx                      OK
//   400 411 413 414 415 422 431  INVALID_ARGUMENT
//   401  UNAUTHENTICATED         403  PERMISSION_DENIED   404  NOT_FOUND
//   405 501  UNIMPLEMENTED       409 412  ABORTED         410 416  OUT_OF_RANGE
//   429 507  RESOURCE_EXHAUSTED  504  DEADLINE_EXCEEDED
//   408 500 502 503  UNAVAILABLE                          every other  UNKNOWN
absl::StatusCode CodeOfHttpStatus(int status);

}  // namespace cachewarm::http
