// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

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
  switch (event) {
    case kHeldPodElected:
      return "a held pod of the template is elected";
    case kPodElected:
      return "a running pod is elected";
    case kJobElected:
      return "a builder Job is requested";
    case kContainerStarted:
      return "the builder's container starts";
    case kKeyUnused:
      return "no pod uses the image any more, or no node has the GPU type and CPU class";
    case kPodGone:
      return "the builder's pod or container is gone";
    case kWrongNode:
      return "the pod is scheduled to a node with another GPU type or CPU class";
    case kPendingTimeout:
      return "compile.pendingSeconds have passed before the container started";
    case kJobRejected:
      return "the API server rejects the Job";
    case kJobFailed:
      return "the Job fails before its container starts";
    case kWorkloadBlocked:
      return "a pod of the workload needs the capacity, quota or volume of the Job";
    case kPaused:
      return "spec.paused is set";
    case kAgentWaits:
      return "the agent reports that it waits";
    case kAgentPacks:
      return "the agent reports that it packs";
    case kPublishRetried:
      return "the agent reports a failed publication, which it retries";
    case kPushed:
      return "the files are published, and the pods of the group have started";
    case kNodeGone:
      return "the node is gone";
    case kNodeChanged:
      return "the node has another GPU type or CPU class";
    case kPodChanged:
      return "the pod has another image, device count or container";
    case kContainerEnded:
      return "the container exits with an error";
    case kContainerRestarted:
      return "the container restarts";
    case kRequestFailed:
      return "a request of compile.requests fails";
    case kReadyTimeout:
      return "compile.timeoutSeconds have passed before the pods were ready";
    case kSettleTimeout:
      return "compile.timeoutSeconds have passed before the cache settled";
    case kPublishTimeout:
      return "compile.timeoutSeconds have passed and the last publication failed";
    case kCaptureFailed:
      return "the agent reports that it cannot capture (its reason replaces this one)";
    case kBundleSuspended:
      return "the bundle with which the pod started is suspended";
    case kAllCaptured:
      return "no pod of the group is left";
    case kSuspendedAgain:
      return "no pod of the group is left, and the bundle is a suspended one";
    case kMustProve:
      return "no pod of the group is left, and the bundle must be proven";
    case kProven:
      return "the pod of the proof is ready";
    case kProofDropped:
      return "spec.compile.proof is removed";
    case kProofLost:
      return "the proof lost its key, node or pod";
    case kProofRefused:
      return "the engine refuses the bundle, or is not ready in time";
  }
  return "";
}

}  // namespace cachewarm::plan
