// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "lib/api/cache_warmup.h"

// The life of a build as one table: (phase, event) gives the next phase, the reason and the action.
// No other code sets BuilderStatus::state. docs/reference/builds.md is printed from the table.
// Pure.
namespace cachewarm::plan {

enum class BuildPhase {
  kNone,       // no build of the key runs
  kCandidate,  // a held pod is elected and has not started
  kJob,        // a Job is requested and its container has not started
  kStarting,   // the builder's container runs, and the agent waits for it to settle
  kPacking,    // the agent packs and publishes the builder's files
  kRanks,      // the builder is captured, and other pods of its group may follow
  kProving,    // a second Job starts with the bundle
  kCaptured,   // ended with a bundle
  kFailed,     // ended without a bundle
};

enum class BuildEvent {
  // Elections
  kHeldPodElected,
  kPodElected,
  kJobElected,
  // Starts
  kContainerStarted,
  kKeyUnused,
  kPodGone,
  kWrongNode,
  kPendingTimeout,
  kJobRejected,
  kJobFailed,
  kWorkloadBlocked,
  kPaused,
  // Captures
  kAgentWaits,
  kAgentPacks,
  kPublishRetried,
  kPushed,
  kNodeGone,
  kNodeChanged,
  kPodChanged,
  kContainerEnded,
  kContainerRestarted,
  kRequestFailed,
  kReadyTimeout,
  kSettleTimeout,
  kPublishTimeout,
  kCaptureFailed,
  kBundleSuspended,
  // Ends
  kAllCaptured,
  kSuspendedAgain,
  kMustProve,
  kProven,
  kProofDropped,
  kProofLost,
  kProofRefused,
};

enum class BuildAction {
  kNone,
  kPublish,  // all nodes that fit get the bundle
  kFail,     // counts as a failed attempt: a metric, an event, and a backoff
  kRetire,   // counts as no attempt: another pod may be elected at once
};

// A set of phases.
class BuildPhases {
 public:
  constexpr BuildPhases(std::initializer_list<BuildPhase> phases) {
    for (const BuildPhase phase : phases) {
      bits_ |= 1U << static_cast<unsigned>(phase);
    }
  }
  constexpr bool Contains(BuildPhase phase) const {
    return (bits_ >> static_cast<unsigned>(phase) & 1U) != 0;
  }

 private:
  uint32_t bits_ = 0;
};

struct BuildTransition {
  BuildPhases from;
  BuildEvent event;
  BuildPhase to;
  std::string_view reason = {};  // BuilderStatus::reason; empty in a phase that is no end
  BuildAction action = BuildAction::kNone;
};

std::span<const BuildTransition> BuildTransitions();

BuildPhase PhaseOf(const api::BuilderStatus& builder);

// Returns the row of the table. Throws std::logic_error if there is none, which is a fault of the
// caller.
const BuildTransition& FindTransition(BuildPhase from, BuildEvent event);

// Sets the state and the reason of `builder` according to the table, and returns the row. Call it
// before other fields of `builder` change, because they define its phase.
const BuildTransition& Advance(api::BuilderStatus& builder, BuildEvent event);

api::BuilderState StateOf(BuildPhase phase);
std::string_view Name(BuildPhase phase);
std::string_view Name(BuildEvent event);  // a clause for users

}  // namespace cachewarm::plan
