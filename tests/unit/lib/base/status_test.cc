// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace cachewarm {
namespace {

TEST(Annotate, PutsTheContextBeforeTheMessage) {
  const absl::Status status = Annotate(absl::NotFoundError("no such file"), "/etc/x");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "/etc/x: no such file");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
  EXPECT_EQ(Annotate(absl::Status(absl::StatusCode::kAborted, ""), "x").message(), "x: ABORTED");
}

TEST(Message, IsNeverEmptyForAnError) {
  EXPECT_EQ(Message(absl::OkStatus()), "ok");
  EXPECT_EQ(Message(absl::UnavailableError("down")), "down");
  EXPECT_EQ(Message(absl::UnavailableError("")), "UNAVAILABLE");
}

TEST(IsRetryable, FollowsTheDocumentedTable) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kAborted, absl::StatusCode::kResourceExhausted}) {
    EXPECT_TRUE(IsRetryable(absl::Status(code, "m")));
  }
  for (const absl::StatusCode code :
       {absl::StatusCode::kOk, absl::StatusCode::kNotFound, absl::StatusCode::kDataLoss,
        absl::StatusCode::kInvalidArgument, absl::StatusCode::kFailedPrecondition,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnauthenticated,
        absl::StatusCode::kCancelled, absl::StatusCode::kInternal, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kAlreadyExists}) {
    EXPECT_FALSE(IsRetryable(absl::Status(code, "m")));
  }
}

absl::Status FailWhen(bool fail, int& steps) {
  CW_RETURN_IF_ERROR(fail ? absl::InternalError("first") : absl::OkStatus());
  ++steps;
  return absl::OkStatus();
}

TEST(ReturnIfError, ReturnsTheFirstError) {
  int steps = 0;
  EXPECT_TRUE(FailWhen(false, steps).ok());
  EXPECT_EQ(FailWhen(true, steps).message(), "first");
  EXPECT_EQ(steps, 1);
}

absl::StatusOr<std::unique_ptr<int>> MakeInt(int value) {
  if (value < 0) {
    return absl::OutOfRangeError("negative");
  }
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, MakeInt(a));
  CW_ASSIGN_OR_RETURN(std::unique_ptr<int> second, MakeInt(b));
  CW_ASSIGN_OR_RETURN(second, MakeInt(*second));
  return *first + *second;
}

TEST(AssignOrReturn, MovesValuesAndPassesErrors) {
  EXPECT_EQ(Sum(1, 2).value(), 3);
  EXPECT_TRUE(absl::IsOutOfRange(Sum(-1, 2).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Sum(1, -2).status()));
}

}  // namespace
}  // namespace cachewarm
