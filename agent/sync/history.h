// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// Whose fault it is that a fetch ended.
enum class FaultSource {
  kBundle,     // what its digest names, or what the store gave in its place
  kSignature,  // none by a key that this node trusts
  kStore,      // it does not answer, or refuses us
  kDisk,       // of this node
};

// What such a fault means to this node.
enum class FaultKind {
  kRefused,    // the bytes are what the digest says, and they are not allowed here: for good
  kDamaged,    // the store's bytes are not those of the digest: until somebody mends its copy
  kUnsigned,   // until somebody signs it
  kMissing,    // the store has no such bundle
  kOverLimit,  // byteLimit of this node
  kStore,
  kDiskFull,
  kDisk,  // it is read-only, it returns I/O errors, ...
};

// A failure and when to try again.
struct FailureState {
  int count = 0;
  MonoTime not_before{};  // MonoTime::max(): never
  std::string reason;     // of lib/api/reasons.h
  std::string message;    // with what to do about it
  // The bundle is refused or damaged: remembered on the disk, so that no restart fetches it again.
  bool quarantined = false;
};

struct BundleName {
  std::string warmup_uid;
  Digest digest;
  friend auto operator<=>(const BundleName&, const BundleName&) = default;
};

// What went on since the agent started. Lost with the process, except for what is in quarantine
// (agent/tree/quarantine.h), and nothing is wrong then.
struct History {
  std::set<std::string> fetching;                   // generation ids under way
  std::map<std::string, FailureState> generations;  // by id: the store or the disk failed us
  std::map<BundleName, FailureState> bundles;  // the bundle itself is missing, damaged or refused
};

// The longest that a damaged bundle waits for the next look at it.
inline constexpr Duration kQuarantineMax{6 * 3600 * 1000};

FaultKind KindOfFault(FaultSource source, const absl::Status& status);

// Its reason in NodeCache.status and in metrics.
std::string ReasonOf(FaultKind kind);

// True when the bundle is to blame, so that the others of its generation go on without it; false
// when the store or the disk is, and all of them wait.
bool IsBundleFault(FaultKind kind);

struct Moment {
  MonoTime mono{};
  WallTime wall{};    // for the message
  double random = 0;  // in [0, 1)
};

// One more failure: counts up and sets the time of the next try. The store and the disk may be
// back in a second; a bundle must be pushed or mended by somebody, and one that is damaged costs
// its whole download to look at: up to 30 s, 10 minutes and 6 hours. What is refused is never
// tried again.
void RecordFailure(FailureState& failure, FaultKind kind, const absl::Status& status,
                   const Moment& moment);

}  // namespace cachewarm::agent
