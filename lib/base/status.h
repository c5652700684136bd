// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Errors are absl::Status. In the whole project, retry loops treat each code in the same way:
//   UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED   retry with backoff
//   RESOURCE_EXHAUSTED                        retry later (disk full, HTTP 429)
//   NOT_FOUND, ALREADY_EXISTS                 read the object again, then decide what to do
//   DATA_LOSS                                 digest mismatch; never give the bytes to a pod
//   INVALID_ARGUMENT, FAILED_PRECONDITION,
//   PERMISSION_DENIED, UNAUTHENTICATED        do not retry until something has changed
//   CANCELLED                                 the process is stopping
namespace cachewarm {

// Returns an error with the code of `status` and the message "context: message". Drops the payloads
// of `status`. Returns OK unchanged.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// Returns true for the codes that the list above marks "retry with backoff" or "retry later".
bool IsRetryable(const absl::Status& status);

// Returns the status of a Status or of a StatusOr, so that a template can accept both. The
// reference is valid as long as the argument.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Returns the message of `status` without its code; never empty for an error.
std::string Message(const absl::Status& status);

}  // namespace cachewarm

#define CW_STATUS_CONCAT_INNER(a, b) a##b
#define CW_STATUS_CONCAT(a, b) CW_STATUS_CONCAT_INNER(a, b)

// If the status of `expr` is an error, returns it from the enclosing function.
#define CW_RETURN_IF_ERROR(expr)                            \
  do {                                                      \
    if (absl::Status cw_status = (expr); !cw_status.ok()) { \
      return cw_status;                                     \
    }                                                       \
  } while (false)

// Assigns the value of a StatusOr to `lhs`; if it is an error, returns its status from the
// enclosing function.
#define CW_ASSIGN_OR_RETURN(lhs, expr) \
  CW_ASSIGN_OR_RETURN_INNER(CW_STATUS_CONCAT(cw_status_or_, __LINE__), lhs, expr)
#define CW_ASSIGN_OR_RETURN_INNER(holder, lhs, expr) \
  auto holder = (expr);                              \
  if (!holder.ok()) {                                \
    return std::move(holder).status();               \
  }                                                  \
  lhs = std::move(holder).value()
