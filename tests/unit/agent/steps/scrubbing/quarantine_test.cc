// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/quarantine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/steps/workers.h"
#include "agent/tree/layout.h"
#include "agent/tree/quarantine.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class QuarantineTest : public ::testing::Test, protected Workbench {
 protected:
  Moment Now() { return {clock_.Monotonic(), clock_.Now(), 0.0}; }

  void Note(FaultKind kind, const Digest& digest) {
    NoteSetback(history_.bundles[{kMount.uid, digest}], kind, absl::DataLossError("why"), Now());
    quarantine_.Follow(history_);
  }

  // What a restarted agent knows.
  History Recalled(const std::string& version = "1.0") {
    History history;
    Quarantine(context_, version).Recall(history);
    return history;
  }

  const BundleName bad_{kMount.uid, DigestOf("bad")};
  History history_;
  Workers workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  Quarantine quarantine_{context_, "1.0"};
};

TEST_F(QuarantineTest, ARestartedAgentKnowsWhatWasRefused) {
  Note(FaultKind::kRefused, bad_.digest);
  clock_.Advance(hours(1000));
  const Setback setback = Recalled().bundles.at(bad_);
  EXPECT_EQ(setback.not_before, MonoTime::max());
  EXPECT_EQ(setback.reason, "BundleRefused");
  EXPECT_EQ(setback.message, history_.bundles.at(bad_).message);
  EXPECT_TRUE(setback.quarantined);
}

TEST_F(QuarantineTest, ARestartDoesNotShortenTheWaitForADamagedBundle) {
  Note(FaultKind::kDamaged, bad_.digest);
  Note(FaultKind::kDamaged, bad_.digest);
  clock_.Advance(minutes(1));
  const Setback setback = Recalled().bundles.at(bad_);
  EXPECT_EQ(setback.not_before - clock_.Monotonic(), minutes(3));
  EXPECT_EQ(setback.failures, 2);
  clock_.Advance(hours(1));
  EXPECT_EQ(Recalled().bundles.at(bad_).not_before, clock_.Monotonic()) << "due, and still known";
}

TEST_F(QuarantineTest, AClockThatWasWrongMakesNobodyWaitLonger) {
  Note(FaultKind::kDamaged, bad_.digest);
  QuarantinedBundle written = ReadQuarantinedBundles(root_.dir()).at(0);
  written.until = clock_.Now() + hours(1'000'000);
  ASSERT_TRUE(WriteQuarantinedBundle(root_.dir(), written).ok());
  EXPECT_EQ(Recalled().bundles.at(bad_).not_before - clock_.Monotonic(), kQuarantineMost);
}

TEST_F(QuarantineTest, AnAgentOfAnotherVersionLooksAgain) {
  Note(FaultKind::kRefused, bad_.digest);
  EXPECT_TRUE(Recalled("1.1").bundles.empty());
  Quarantine newer(context_, "1.1");
  History history;
  newer.Recall(history);
  newer.Follow(history);
  EXPECT_FALSE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
}

TEST_F(QuarantineTest, AnAgentWithOtherLimitsLooksAgain) {
  Note(FaultKind::kRefused, bad_.digest);
  Context raised = ContextWith(workers_);
  raised.limits.entries_max += 1;
  History history;
  Quarantine(raised, "1.0").Recall(history);
  EXPECT_TRUE(history.bundles.empty());
  EXPECT_FALSE(Recalled().bundles.empty());
}

TEST_F(QuarantineTest, IsForgottenWithTheWishAndAfterASuccess) {
  Note(FaultKind::kDamaged, bad_.digest);
  ASSERT_TRUE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
  history_.bundles.clear();
  quarantine_.Follow(history_);
  EXPECT_FALSE(root_.Exists(QuarantinedBundlePath(bad_.warmup_uid, bad_.digest)));
  EXPECT_TRUE(Recalled().bundles.empty());
}

TEST_F(QuarantineTest, OrdinarySetbacksAreNotWrittenDown) {
  for (const FaultKind kind : {FaultKind::kMissing, FaultKind::kOverLimit}) {
    Note(kind, bad_.digest);
    EXPECT_TRUE(Recalled().bundles.empty());
  }
}

TEST_F(QuarantineTest, WhatTheDiskRefusesIsWrittenByALaterTurn) {
  std::filesystem::remove_all(root_ / ".state/quarantine");
  Note(FaultKind::kRefused, bad_.digest);
  EXPECT_EQ(log_.warnings(), std::vector<std::string>{"quarantine not written down"});
  std::filesystem::create_directory(root_ / ".state/quarantine");
  quarantine_.Follow(history_);
  EXPECT_TRUE(Recalled().bundles.contains(bad_));
}

TEST_F(QuarantineTest, IsCountedByReason) {
  Note(FaultKind::kRefused, DigestOf("a"));
  Note(FaultKind::kRefused, DigestOf("b"));
  Note(FaultKind::kDamaged, DigestOf("c"));
  const std::string text = registry_->Serialize();
  EXPECT_NE(text.find("cachewarm_quarantined_bundles{reason=\"BundleRefused\"} 2"),
            std::string::npos);
  EXPECT_NE(text.find("cachewarm_quarantined_bundles{reason=\"VerifyFailed\"} 1"),
            std::string::npos);
}

}  // namespace
}  // namespace cachewarm::agent
