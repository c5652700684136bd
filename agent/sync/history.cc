// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/history.h"

#include <fmt/format.h>

#include "lib/api/reasons.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

constexpr BackoffPolicy kStorePolicy{.first = Duration(1'000), .most = Duration(30'000)};
constexpr BackoffPolicy kBundlePolicy{.first = Duration(15'000), .most = Duration(600'000)};
constexpr BackoffPolicy kDamagedPolicy{
    .first = Duration(60'000), .most = kQuarantineMax, .factor = 4.0};

const BackoffPolicy& PolicyOf(FaultKind kind) {
  if (kind == FaultKind::kDamaged) {
    return kDamagedPolicy;
  }
  // A full disk stays full until something is removed; evictions retry at once.
  return IsBundleFault(kind) || kind == FaultKind::kDiskFull ? kBundlePolicy : kStorePolicy;
}

FaultKind KindOfStoreFault(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      return FaultKind::kDamaged;
    case absl::StatusCode::kNotFound:
      return FaultKind::kMissing;
    default:
      return FaultKind::kStore;
  }
}

FaultKind KindOfDiskFault(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange:
      return FaultKind::kOverLimit;
    case absl::StatusCode::kResourceExhausted:
      return FaultKind::kDiskFull;
    default:
      return FaultKind::kDisk;
  }
}

}  // namespace

FaultKind KindOfFault(FaultSource source, const absl::Status& status) {
  switch (source) {
    case FaultSource::kBundle:
      return absl::IsDataLoss(status) ? FaultKind::kDamaged : FaultKind::kRejected;
    case FaultSource::kSignature:
      // CheckSignatures() returns INVALID_ARGUMENT for a missing or wrong signature; any other code
      // means that the file with the keys cannot be read.
      return absl::IsInvalidArgument(status) ? FaultKind::kUnsigned : FaultKind::kDisk;
    case FaultSource::kStore:
      return KindOfStoreFault(status);
    case FaultSource::kDisk:
      break;
  }
  return KindOfDiskFault(status);
}

std::string ReasonOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRejected:
      return std::string(api::reason::kBundleRejected);
    case FaultKind::kDamaged:
      return std::string(api::reason::kVerifyFailed);
    case FaultKind::kUnsigned:
      return std::string(api::reason::kSignatureRejected);
    case FaultKind::kOverLimit:
      return std::string(api::reason::kOverLimit);
    case FaultKind::kDiskFull:
      return std::string(api::reason::kDiskFull);
    case FaultKind::kDisk:
      return std::string(api::reason::kDiskFailed);
    case FaultKind::kMissing:
    case FaultKind::kStore:
      return std::string(api::reason::kFetchFailed);
  }
  return {};
}

bool IsBundleFault(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRejected:
    case FaultKind::kDamaged:
    case FaultKind::kUnsigned:
    case FaultKind::kMissing:
    case FaultKind::kOverLimit:
      return true;
    case FaultKind::kStore:
    case FaultKind::kDiskFull:
    case FaultKind::kDisk:
      return false;
  }
  return false;
}

void RecordFailure(FailureState& failure, FaultKind kind, const absl::Status& status,
                   const Moment& moment) {
  const Duration wait = BackoffDelay(PolicyOf(kind), failure.count, moment.random);
  ++failure.count;
  failure.not_before = moment.mono + wait;
  failure.reason = ReasonOf(kind);
  failure.message = Message(status);
  failure.quarantined = kind == FaultKind::kRejected || kind == FaultKind::kDamaged;
  if (kind == FaultKind::kRejected) {
    failure.not_before = MonoTime::max();
    failure.message += "; quarantined permanently on this node; publish a new bundle";
  } else if (kind == FaultKind::kDamaged) {
    failure.message += fmt::format(
        "; quarantined until {}; repair the blob in the registry or publish a new bundle",
        FormatTime(moment.wall + wait));
  }
}

}  // namespace cachewarm::agent
