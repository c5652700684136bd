// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "lib/api/reasons.h"
#include "operator/plan/context.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using enum BuildPhase;
using enum BuildEvent;

namespace {

constexpr BuildPhases kCapturing = {kStarting, kPacking};
constexpr BuildPhases kOnNode = {kStarting, kPacking, kRanks, kProving};
constexpr BuildPhases kWithJob = {kJob, kStarting, kPacking, kRanks, kProving};

constexpr BuildTransition Fails(BuildPhases from, BuildEvent event, std::string_view why) {
  return {.from = from, .event = event, .to = kFailed, .reason = why, .action = BuildAction::kFail};
}

constexpr BuildTransition Retires(BuildEvent event) {
  return {.from = {kCandidate},
          .event = event,
          .to = kFailed,
          .reason = reason::kBuilderLost,
          .action = BuildAction::kRetire};
}

constexpr BuildTransition Publishes(BuildPhase from, BuildEvent event) {
  return {.from = {from},
          .event = event,
          .to = kCaptured,
          .reason = reason::kCaptured,
          .action = BuildAction::kPublish};
}

// clang-format off
constexpr BuildTransition kTransitions[] = {
    {.from = {kNone}, .event = kHeldPodElected, .to = kCandidate},
    {.from = {kNone}, .event = kPodElected, .to = kStarting},
    {.from = {kNone}, .event = kJobElected, .to = kJob},

    {.from = {kCandidate, kJob}, .event = kContainerStarted, .to = kStarting},
    Retires(kKeyUnused),
    Retires(kPodGone),
    Retires(kWrongNode),
    Fails({kCandidate, kJob, kProving}, kPendingTimeout, reason::kBuilderPending),
    Fails({kJob}, kKeyUnused, reason::kBuilderLost),
    Fails({kJob, kProving}, kJobRejected, reason::kBuilderJobRejected),
    Fails({kJob}, kJobFailed, reason::kBuilderCrashed),
    Fails(kWithJob, kWorkloadBlocked, reason::kBuilderLost),
    Fails(kWithJob, kPaused, reason::kBuilderLost),

    {.from = kCapturing, .event = kAgentWaits, .to = kStarting},
    {.from = kCapturing, .event = kAgentPacks, .to = kPacking},
    {.from = kCapturing, .event = kPublishRetried, .to = kPacking},
    {.from = kCapturing, .event = kPushed, .to = kRanks},
    Fails(kCapturing, kPodGone, reason::kBuilderLost),
    Fails(kCapturing, kNodeGone, reason::kBuilderLost),
    Fails(kCapturing, kNodeChanged, reason::kBuilderLost),
    Fails(kCapturing, kPodChanged, reason::kBuilderLost),
    Fails(kCapturing, kContainerEnded, reason::kBuilderCrashed),
    Fails(kCapturing, kContainerRestarted, reason::kBuilderRestarted),
    Fails(kCapturing, kRequestFailed, reason::kBuildRequestFailed),
    Fails(kCapturing, kReadyTimeout, reason::kBuilderTimeout),
    Fails(kCapturing, kSettleTimeout, reason::kCacheNotSettled),
    Fails(kCapturing, kPublishTimeout, reason::kPublishFailed),
    Fails(kCapturing, kCaptureFailed, reason::kNothingToCapture),
    Fails(kOnNode, kBundleSuspended, reason::kBuilderLost),

    Publishes(kRanks, kAllCaptured),
    Fails({kRanks}, kSuspendedAgain, reason::kBundleSuspended),
    {.from = {kRanks}, .event = kMustProve, .to = kProving},
    Publishes(kProving, kProven),
    Publishes(kProving, kProofDropped),
    Fails({kProving}, kProofLost, reason::kBuilderLost),
    Fails({kProving}, kJobFailed, reason::kBuilderLost),
    Fails({kProving}, kProofRefused, reason::kProofFailed),
};
// clang-format on

constexpr std::array<std::string_view, 9> kPhaseNames = {"no build", "Candidate", "Job",
                                                         "Starting", "Packing",   "Ranks",
                                                         "Proving",  "Captured",  "Failed"};

// In clauses for users.
constexpr std::pair<BuildEvent, std::string_view> kEventNames[] = {
    {kHeldPodElected, "a held pod of the template is elected"},
    {kPodElected, "a running pod is elected"},
    {kJobElected, "a builder Job is requested"},
    {kContainerStarted, "the builder's container starts"},
    {kKeyUnused, "no pod uses the image any more, or no node has the GPU type and CPU class"},
    {kPodGone, "the builder's pod or container is gone"},
    {kWrongNode, "the pod is scheduled to a node with another GPU type or CPU class"},
    {kPendingTimeout, "compile.pendingSeconds have passed before the container started"},
    {kJobRejected, "the API server rejects the Job"},
    {kJobFailed, "the Job fails before its container starts"},
    {kWorkloadBlocked, "a pod of the workload needs the capacity, quota or volume of the Job"},
    {kPaused, "spec.paused is set"},
    {kAgentWaits, "the agent reports that it waits"},
    {kAgentPacks, "the agent reports that it packs"},
    {kPublishRetried, "the agent reports a failed publication, which it retries"},
    {kPushed, "the files are published, and the pods of the group have started"},
    {kNodeGone, "the node is gone"},
    {kNodeChanged, "the node has another GPU type or CPU class"},
    {kPodChanged, "the pod has another image, device count or container"},
    {kContainerEnded, "the container exits with an error"},
    {kContainerRestarted, "the container restarts"},
    {kRequestFailed, "a request of compile.requests fails"},
    {kReadyTimeout, "compile.timeoutSeconds have passed before the pods were ready"},
    {kSettleTimeout, "compile.timeoutSeconds have passed before the cache settled"},
    {kPublishTimeout, "compile.timeoutSeconds have passed and the last publication failed"},
    {kCaptureFailed, "the agent reports that it cannot capture (its reason replaces this one)"},
    {kBundleSuspended, "the bundle with which the pod started is suspended"},
    {kAllCaptured, "no pod of the group is left"},
    {kSuspendedAgain, "no pod of the group is left, and the bundle is a suspended one"},
    {kMustProve, "no pod of the group is left, and the bundle must be proven"},
    {kProven, "the pod of the proof is ready"},
    {kProofDropped, "spec.compile.proof is removed"},
    {kProofLost,
     "the key is no longer used, the node is gone or has another GPU type or CPU class, or the pod "
     "of the proof is gone"},
    {kProofRefused, "the engine refuses the bundle, or is not ready in time"}};

}  // namespace

std::span<const BuildTransition> BuildTransitions() {
  return kTransitions;
}

BuildPhase PhaseOf(const api::BuilderStatus& builder) {
  if (!IsRunning(builder)) {
    return kNone;
  }
  if (builder.proof) {
    return kProving;
  }
  if (builder.captured) {
    return kRanks;
  }
  if (!builder.node.empty()) {
    return builder.state == BuilderState::kCapturing ? kPacking : kStarting;
  }
  return builder.job.empty() ? kCandidate : kJob;
}

const BuildTransition& FindTransition(BuildPhase from, BuildEvent event) {
  const auto* const row = std::find_if(
      std::begin(kTransitions), std::end(kTransitions),
      [&](const BuildTransition& each) { return each.event == event && each.from.Contains(from); });
  if (row == std::end(kTransitions)) {
    throw std::logic_error(
        fmt::format("no transition of a build from {} when {}", Name(from), Name(event)));
  }
  return *row;
}

const BuildTransition& Advance(api::BuilderStatus& builder, BuildEvent event) {
  const BuildTransition& row = FindTransition(PhaseOf(builder), event);
  builder.state = StateOf(row.to);
  builder.reason = std::string(row.reason);
  return row;
}

api::BuilderState StateOf(BuildPhase phase) {
  switch (phase) {
    case kPacking:
    case kRanks:
      return BuilderState::kCapturing;
    case kProving:
      return BuilderState::kProving;
    case kCaptured:
      return BuilderState::kCaptured;
    case kFailed:
      return BuilderState::kFailed;
    case kNone:
    case kCandidate:
    case kJob:
    case kStarting:
      break;
  }
  return BuilderState::kElected;
}

std::string_view Name(BuildPhase phase) {
  return kPhaseNames.at(static_cast<size_t>(phase));
}

std::string_view Name(BuildEvent event) {
  const auto* const found = std::find_if(std::begin(kEventNames), std::end(kEventNames),
                                         [&](const auto& row) { return row.first == event; });
  return found == std::end(kEventNames) ? "" : found->second;
}

}  // namespace cachewarm::plan
