// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/attempts.h"

#include "lib/api/reasons.h"
#include "lib/base/backoff.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using api::BuilderStatus;

namespace {

constexpr BackoffPolicy kRetry = {
    .first = std::chrono::seconds(10), .most = std::chrono::minutes(6), .jitter = 0};
constexpr BackoffPolicy kRebuild = {
    .first = std::chrono::minutes(10), .most = std::chrono::hours(24), .jitter = 0};

WallTime NextBuild(const BuilderStatus& last, int backoff_limit) {
  const bool lost = last.state == BuilderState::kFailed && last.reason == reason::kBuilderLost;
  if (lost && last.job.empty()) {
    // Retry at once, without backoff: the build lost its pod but is not known to fail, and the next
    // builder is a pod that runs anyway.
    return last.finished_time;
  }
  if (last.state == BuilderState::kFailed && last.attempt <= backoff_limit) {
    return last.finished_time + BackoffDelay(kRetry, last.attempt - 1, 0);
  }
  const int rebuilds =
      last.state == BuilderState::kFailed ? last.attempt - backoff_limit : last.attempt;
  return last.finished_time + BackoffDelay(kRebuild, rebuilds - 1, 0);
}

// True if the attempts start from 1 again: the settings changed since the last build, or a pod of a
// new revision was created after the builder of that build was elected. Pods created before that do
// not count: while pods of two revisions exist, each revision would otherwise reset the attempts of
// the other.
bool ShouldResetAttempts(const Builds& builds, const BuilderStatus& last,
                         const BuildTrigger& trigger) {
  const bool other_settings =
      !last.settings_hash.empty() && last.settings_hash != builds.settings_hash;
  return other_settings ||
         (last.revision != trigger.revision && trigger.created > last.elected_time);
}

int NextAttempt(const Builds& builds, const BuilderStatus* last, const BuildTrigger& trigger) {
  if (last == nullptr || ShouldResetAttempts(builds, *last, trigger)) {
    return 1;
  }
  const bool lost = last->reason == reason::kBuilderLost && last->job.empty();
  return lost ? last->attempt : last->attempt + 1;
}

}  // namespace

std::string HashSettings(const api::WarmupSpec& spec) {
  api::WarmupSpec counts;
  counts.caches = spec.caches;
  counts.gpu_types = spec.gpu_types;
  counts.node_selector = spec.node_selector;
  counts.compile.timeout_seconds = spec.compile.timeout_seconds;
  counts.compile.pending_seconds = spec.compile.pending_seconds;
  counts.compile.settle_seconds = spec.compile.settle_seconds;
  counts.compile.proof = spec.compile.proof;
  codec::Json hashed = api::EncodeSpec(counts);
  hashed.erase("retain");  // unknown to older operators, whose hashes must stay valid
  return DigestOf(codec::DumpJson(hashed)).Short();
}

bool MayBuild(const Context& context, Builds& builds, const BuilderStatus* last,
              const BuildTrigger& trigger) {
  if (last == nullptr || ShouldResetAttempts(builds, *last, trigger)) {
    return true;
  }
  if (last->bundles_suspended >= kSuspendedPerKeyMax) {
    return false;
  }
  const WallTime next = NextBuild(*last, context.in.warmup.spec.compile.backoff_limit);
  if (context.in.now < next) {
    builds.effects.RequeueAt(next);
    return false;
  }
  return true;
}

BuilderStatus& StartBuild(const Context& context, Builds& builds, const LiveKey& key,
                          const BuildTrigger& trigger) {
  BuilderStatus* present = FindBuilder(builds.builders, key.key);
  const int attempt = NextAttempt(builds, present, trigger);
  const int suspended = present == nullptr || ShouldResetAttempts(builds, *present, trigger)
                            ? 0
                            : present->bundles_suspended;
  if (present == nullptr) {
    present = &builds.builders.emplace_back();
  }
  *present = {.key = key.key,
              .gpu_type = key.factors.gpu_type,
              .cpu_class = key.factors.cpu_class,
              .image = key.factors.image,
              .revision = trigger.revision,
              .settings_hash = builds.settings_hash,
              .state = StateOf(FindTransition(BuildPhase::kNone, trigger.event).to),
              .attempt = attempt,
              .bundles_suspended = suspended,
              .elected_time = context.stamp()};
  return *present;
}

}  // namespace cachewarm::plan
