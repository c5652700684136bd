// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/history.h"

#include "lib/api/reasons.h"
#include "lib/base/status.h"

namespace cachewarm::agent {

void NoteSetback(Setback& setback, const absl::Status& status, const BackoffPolicy& policy,
                 double random, MonoTime now) {
  setback.not_before = now + BackoffDelay(policy, setback.failures, random);
  ++setback.failures;
  setback.reason = FetchReason(status);
  setback.message = Message(status);
}

std::string FetchReason(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
      return std::string(api::reason::kVerifyFailed);
    case absl::StatusCode::kOutOfRange:
      return std::string(api::reason::kOverLimit);
    case absl::StatusCode::kResourceExhausted:
      return std::string(api::reason::kDiskFull);
    default:
      return std::string(api::reason::kFetchFailed);
  }
}

bool IsBundleFault(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return true;
    default:
      return false;
  }
}

}  // namespace cachewarm::agent
