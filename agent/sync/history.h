// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// A failure and when to try again.
struct Setback {
  int failures = 0;
  MonoTime not_before{};
  std::string reason;   // of lib/api/reasons.h
  std::string message;  // with what to do about it
};

struct BundleName {
  std::string warmup_uid;
  Digest digest;
  friend auto operator<=>(const BundleName&, const BundleName&) = default;
};

// What went on since the agent started. Lost with the process, and nothing is wrong then.
struct History {
  std::set<std::string> fetching;              // generation ids under way
  std::map<std::string, Setback> generations;  // by id: the store or the disk failed us
  std::map<BundleName, Setback> bundles;       // the bundle itself is missing, damaged or refused
};

// One more failure: counts up and sets the time of the next try.
void NoteSetback(Setback& setback, const absl::Status& status, const BackoffPolicy& policy,
                 double random, MonoTime now);

// NodeCache reason for an error of a fetch.
std::string FetchReason(const absl::Status& status);

// True when the bundle is to blame, so that the others of its generation go on without it; false
// when the store or the disk is, and all of them wait.
bool IsBundleFault(const absl::Status& status);

}  // namespace cachewarm::agent
