// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "agent/sync/disk_space.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// Origin of the error that ended a fetch.
enum class FaultSource {
  kBundle,     // the bundle is invalid, or its bytes do not match the digest
  kSignature,  // no signature by a trusted key, or the keys cannot be read
  kStore,      // the store does not respond or denies access
  kDisk,       // the disk of this node
};

// Class of a fault; it decides when the fetch is retried.
enum class FaultKind {
  kRejected,  // the bytes match the digest but are not allowed on this node: never retried
  kDamaged,   // the bytes in the store do not match the digest: retried until the store is repaired
  kUnsigned,  // not signed by a trusted key: retried until it is signed
  kMissing,   // not in the store
  kOverLimit,  // the tree would exceed byteLimit of this node
  kStore,
  kDiskFull,
  kDisk,  // the disk is read-only or returns I/O errors
};

// Consecutive failures of one bundle, generation or capture, and the time of the next retry.
struct FailureState {
  int count = 0;
  MonoTime not_before{};  // MonoTime::max(): never
  std::string reason;     // one of the reasons in lib/api/reasons.h
  std::string message;    // error and remedy, for users
  // True if the bundle was rejected or damaged. Such a failure is persisted, so that a restarted
  // agent does not fetch the bundle again.
  bool quarantined = false;
  // The amount to remove from the disk before a retry can succeed.
  DiskAmount lacking;
};

struct BundleName {
  std::string warmup_uid;
  Digest digest;
  friend auto operator<=>(const BundleName&, const BundleName&) = default;
};

// Running fetches and failures since the agent started. They need not survive a restart, except
// quarantined bundles, which are on disk too (agent/tree/journal.h).
struct History {
  std::set<std::string> fetching;                   // ids of generations that are being fetched
  std::map<std::string, FailureState> generations;  // failures of store or disk, by generation
  std::map<BundleName, FailureState> bundles;       // failures of one bundle (IsBundleFault())
};

// Maximum wait until a damaged bundle is fetched again.
inline constexpr Duration kQuarantineMax{6 * 3600 * 1000};

// Classifies an error of a fetch.
FaultKind KindOfFault(FaultSource source, const absl::Status& status);

// Returns the reason that NodeCache.status and the metrics report for `kind`.
std::string ReasonOf(FaultKind kind);

// Returns true if the fault concerns one bundle: the other bundles of the generation are then
// fetched without that one. Returns false for a fault of the store or the disk: all bundles of the
// generation then wait.
bool IsBundleFault(FaultKind kind);

struct Moment {
  MonoTime mono{};
  WallTime wall{};    // current time, for the message
  double random = 0;  // random number in [0, 1) for the backoff
};

// Records one more failure and sets the time of the next retry by exponential backoff. Maximum
// waits: 30 s for store and disk, which may recover soon; 10 minutes for missing, unsigned or too
// large bundles and for a full disk; 6 hours for damaged bundles, because a retry downloads the
// whole bundle. Rejected bundles are never retried.
void RecordFailure(FailureState& failure, FaultKind kind, const absl::Status& status,
                   const Moment& moment);

}  // namespace cachewarm::agent
