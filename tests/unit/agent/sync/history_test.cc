// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

using absl::StatusCode;
using std::chrono::seconds;

const MonoTime kMono{seconds(100)};
const WallTime kWall{seconds(1'700'000'000)};

struct FaultCase {
  FaultSource source;
  StatusCode code;
  FaultKind kind;
  std::string_view reason;
  bool is_bundle_fault;
};

const std::vector<FaultCase>& FaultCases() {
  using enum FaultSource;
  static const std::vector<FaultCase> cases = {
      {kBundle, StatusCode::kInvalidArgument, FaultKind::kRejected, "BundleRejected", true},
      {kBundle, StatusCode::kResourceExhausted, FaultKind::kRejected, "BundleRejected", true},
      {kBundle, StatusCode::kDataLoss, FaultKind::kDamaged, "VerifyFailed", true},
      {kSignature, StatusCode::kInvalidArgument, FaultKind::kUnsigned, "SignatureRejected", true},
      {kSignature, StatusCode::kFailedPrecondition, FaultKind::kDisk, "DiskFailed", false},
      {kStore, StatusCode::kDataLoss, FaultKind::kDamaged, "VerifyFailed", true},
      {kStore, StatusCode::kNotFound, FaultKind::kMissing, "FetchFailed", true},
      {kStore, StatusCode::kUnavailable, FaultKind::kStore, "FetchFailed", false},
      {kStore, StatusCode::kDeadlineExceeded, FaultKind::kStore, "FetchFailed", false},
      {kStore, StatusCode::kResourceExhausted, FaultKind::kStore, "FetchFailed", false},
      {kStore, StatusCode::kInvalidArgument, FaultKind::kStore, "FetchFailed", false},
      {kStore, StatusCode::kUnauthenticated, FaultKind::kStore, "FetchFailed", false},
      {kStore, StatusCode::kPermissionDenied, FaultKind::kStore, "FetchFailed", false},
      {kDisk, StatusCode::kOutOfRange, FaultKind::kOverLimit, "OverByteLimit", true},
      {kDisk, StatusCode::kResourceExhausted, FaultKind::kDiskFull, "DiskFull", false},
      {kDisk, StatusCode::kPermissionDenied, FaultKind::kDisk, "DiskFailed", false},
      {kDisk, StatusCode::kFailedPrecondition, FaultKind::kDisk, "DiskFailed", false},
      {kDisk, StatusCode::kUnavailable, FaultKind::kDisk, "DiskFailed", false},
      {kDisk, StatusCode::kInternal, FaultKind::kDisk, "DiskFailed", false},
  };
  return cases;
}

TEST(KindOfFault, DistinguishesBundleStoreAndDisk) {
  for (const FaultCase& each : FaultCases()) {
    const absl::Status status(each.code, "x");
    const FaultKind kind = KindOfFault(each.source, status);
    EXPECT_EQ(kind, each.kind) << status;
    EXPECT_EQ(ReasonOf(kind), each.reason) << status;
    EXPECT_EQ(IsBundleFault(kind), each.is_bundle_fault) << status;
  }
}

// The waits of seven failures in a row, in seconds, with the longest jitter.
std::vector<double> WaitsOf(FaultKind kind) {
  FailureState failure;
  std::vector<double> waits;
  for (int i = 0; i < 7; ++i) {
    RecordFailure(failure, kind, absl::UnavailableError("down"), {kMono, kWall, 0.0});
    waits.push_back(std::chrono::duration<double>(failure.not_before - kMono).count());
  }
  return waits;
}

TEST(RecordFailure, BackoffDependsOnFaultKind) {
  EXPECT_EQ(WaitsOf(FaultKind::kStore), (std::vector<double>{1, 2, 4, 8, 16, 30, 30}));
  EXPECT_EQ(WaitsOf(FaultKind::kDisk), WaitsOf(FaultKind::kStore));
  EXPECT_EQ(WaitsOf(FaultKind::kMissing), (std::vector<double>{15, 30, 60, 120, 240, 480, 600}));
  EXPECT_EQ(WaitsOf(FaultKind::kOverLimit), WaitsOf(FaultKind::kMissing));
  EXPECT_EQ(WaitsOf(FaultKind::kDiskFull), WaitsOf(FaultKind::kMissing))
      << "a disk stays full until something is removed";
  EXPECT_EQ(WaitsOf(FaultKind::kDamaged),
            (std::vector<double>{60, 240, 960, 3840, 15360, 21600, 21600}));
}

TEST(RecordFailure, RejectedBundleIsNeverRetried) {
  FailureState failure;
  RecordFailure(failure, FaultKind::kRejected, absl::InvalidArgumentError("a device"),
                {kMono, kWall, 0.5});
  EXPECT_EQ(failure.not_before, MonoTime::max());
  EXPECT_TRUE(failure.quarantined);
  EXPECT_EQ(failure.reason, api::reason::kBundleRejected);
  EXPECT_EQ(failure.message,
            "a device; quarantined permanently on this node; publish a new bundle");
}

TEST(RecordFailure, MessageHasEndOfQuarantine) {
  FailureState failure;
  RecordFailure(failure, FaultKind::kDamaged, absl::DataLossError("wrong digest"),
                {kMono, kWall, 0.0});
  EXPECT_TRUE(failure.quarantined);
  EXPECT_EQ(failure.message, "wrong digest; quarantined until " + FormatTime(kWall + seconds(60)) +
                                 "; repair the blob in the registry or publish a new bundle");
}

TEST(RecordFailure, LaterStoreFailureEndsQuarantine) {
  FailureState failure;
  RecordFailure(failure, FaultKind::kDamaged, absl::DataLossError("x"), {kMono, kWall, 0.5});
  RecordFailure(failure, FaultKind::kMissing, absl::NotFoundError("gone"), {kMono, kWall, 0.5});
  EXPECT_FALSE(failure.quarantined);
  EXPECT_EQ(failure.count, 2);
  EXPECT_EQ(failure.message, "gone");
}

}  // namespace
}  // namespace cachewarm::agent
