// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Errors are absl::Status. What a code means to a retry loop is the same in every room:
//   UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED   try again, with backoff
//   RESOURCE_EXHAUSTED                        try again later (disk full, HTTP 429)
//   NOT_FOUND, ALREADY_EXISTS                 look again before deciding
//   DATA_LOSS                                 bytes that do not match their digest; never shown
//   INVALID_ARGUMENT, FAILED_PRECONDITION,
//   PERMISSION_DENIED, UNAUTHENTICATED        do not try again until somebody changes something
//   CANCELLED                                 we are stopping
namespace cachewarm {

// Prefixes the message of a bad status with `context` ("context: message"); OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// True for the codes above that say "try again".
bool IsRetryable(const absl::Status& status);

// The status of a result, for code that takes both kinds. As long as its argument.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Message of `status` without its code, never empty for an error.
std::string Message(const absl::Status& status);

}  // namespace cachewarm

#define CW_STATUS_CONCAT_INNER(a, b) a##b
#define CW_STATUS_CONCAT(a, b) CW_STATUS_CONCAT_INNER(a, b)

// Returns the status of `expr` from the function when it is an error.
#define CW_RETURN_IF_ERROR(expr)                            \
  do {                                                      \
    if (absl::Status cw_status = (expr); !cw_status.ok()) { \
      return cw_status;                                     \
    }                                                       \
  } while (false)

// Assigns the value of a StatusOr to `lhs`, or returns its status from the function.
#define CW_ASSIGN_OR_RETURN(lhs, expr) \
  CW_ASSIGN_OR_RETURN_INNER(CW_STATUS_CONCAT(cw_status_or_, __LINE__), lhs, expr)
#define CW_ASSIGN_OR_RETURN_INNER(holder, lhs, expr) \
  auto holder = (expr);                              \
  if (!holder.ok()) {                                \
    return std::move(holder).status();               \
  }                                                  \
  lhs = std::move(holder).value()
