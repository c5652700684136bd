// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/quarantine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class QuarantineTest : public ::testing::Test, protected Workbench {
 protected:
  Moment Now() { return {clock_.Monotonic(), clock_.Now(), 0.0}; }

  void Record(FaultKind kind, const Digest& digest) {
    RecordFailure(history_.bundles[{kMount.uid, digest}], kind, absl::DataLossError("why"), Now());
    quarantine_.Update(history_);
  }

  // Returns the history of a restarted agent.
  History Restored(const std::string& version = "1.0") {
    History history;
    Quarantine(context_, version).Restore(history);
    return history;
  }

  const BundleName bad_{kMount.uid, DigestOf("bad")};
  History history_;
  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  Quarantine quarantine_{context_, "1.0"};
};

TEST_F(QuarantineTest, RestartKeepsRejectedBundle) {
  Record(FaultKind::kRejected, bad_.digest);
  clock_.Advance(hours(1000));
  const FailureState failure = Restored().bundles.at(bad_);
  EXPECT_EQ(failure.not_before, MonoTime::max());
  EXPECT_EQ(failure.reason, "BundleRejected");
  EXPECT_EQ(failure.message, history_.bundles.at(bad_).message);
  EXPECT_TRUE(failure.quarantined);
}

TEST_F(QuarantineTest, RestartKeepsRetryTimeOfDamagedBundle) {
  Record(FaultKind::kDamaged, bad_.digest);
  Record(FaultKind::kDamaged, bad_.digest);
  clock_.Advance(minutes(1));
  const FailureState failure = Restored().bundles.at(bad_);
  EXPECT_EQ(failure.not_before - clock_.Monotonic(), minutes(3));
  EXPECT_EQ(failure.count, 2);
  clock_.Advance(hours(1));
  EXPECT_EQ(Restored().bundles.at(bad_).not_before, clock_.Monotonic())
      << "due, and still recorded";
}

TEST_F(QuarantineTest, ClockJumpDoesNotExtendQuarantine) {
  Record(FaultKind::kDamaged, bad_.digest);
  QuarantinedBundle written = ReadQuarantinedBundles(root_.dir()).at(0);
  written.until = clock_.Now() + hours(1'000'000);
  ASSERT_TRUE(WriteQuarantinedBundle(root_.dir(), written).ok());
  EXPECT_EQ(Restored().bundles.at(bad_).not_before - clock_.Monotonic(), kQuarantineMax);
}

TEST_F(QuarantineTest, OtherVersionRetries) {
  Record(FaultKind::kRejected, bad_.digest);
  EXPECT_TRUE(Restored("1.1").bundles.empty());
  Quarantine newer(context_, "1.1");
  History history;
  newer.Restore(history);
  newer.Update(history);
  EXPECT_FALSE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
}

TEST_F(QuarantineTest, OtherLimitsRetry) {
  Record(FaultKind::kRejected, bad_.digest);
  Context raised = ContextWith(workers_);
  raised.limits.entries_max += 1;
  History history;
  Quarantine(raised, "1.0").Restore(history);
  EXPECT_TRUE(history.bundles.empty());
  EXPECT_FALSE(Restored().bundles.empty());
}

TEST_F(QuarantineTest, IsRemovedWithItsFailure) {
  Record(FaultKind::kDamaged, bad_.digest);
  ASSERT_TRUE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
  history_.bundles.clear();
  quarantine_.Update(history_);
  EXPECT_FALSE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
  EXPECT_TRUE(Restored().bundles.empty());
}

TEST_F(QuarantineTest, OtherFailuresAreNotPersisted) {
  for (const FaultKind kind : {FaultKind::kMissing, FaultKind::kOverLimit}) {
    Record(kind, bad_.digest);
    EXPECT_TRUE(Restored().bundles.empty());
  }
}

TEST_F(QuarantineTest, FailedWriteIsRetried) {
  std::filesystem::remove_all(root_ / ".state/quarantine");
  Record(FaultKind::kRejected, bad_.digest);
  EXPECT_EQ(log_.warnings(), std::vector<std::string>{"cannot write quarantine record; retrying"});
  std::filesystem::create_directory(root_ / ".state/quarantine");
  quarantine_.Update(history_);
  EXPECT_TRUE(Restored().bundles.contains(bad_));
}

TEST_F(QuarantineTest, IsCountedByReason) {
  Record(FaultKind::kRejected, DigestOf("a"));
  Record(FaultKind::kRejected, DigestOf("b"));
  Record(FaultKind::kDamaged, DigestOf("c"));
  const std::string text = registry_->Serialize();
  EXPECT_NE(text.find("cachewarm_quarantined_bundles{reason=\"BundleRejected\"} 2"),
            std::string::npos);
  EXPECT_NE(text.find("cachewarm_quarantined_bundles{reason=\"VerifyFailed\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace cachewarm::agent
