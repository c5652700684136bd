// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/condition.h"
#include "operator/plan/bundles.h"
#include "operator/plan/context.h"
#include "operator/plan/effects.h"

// The results of the stages that decide about injection, bundles and builds, and the context of the
// stages after them. decisions.h lists all stages. Pure.
namespace cachewarm::plan {

// Result of DecideAcceptance().
struct Acceptance {
  api::ConditionUpdate ready;
  bool inject = false;
  bool hard = false;  // keep this warmup's entries in NodeCaches unchanged and add none
  std::optional<api::Injection> injection;    // status.injection
  std::optional<api::Suspension> suspension;  // status.suspension
  std::optional<DryRunRequest> dry_run;
  std::optional<WallTime> recheck_at;
};

// Result of DecideHungStarts().
struct BundleReview {
  Bundles bundles;
  std::vector<api::BuilderStatus> builders;  // a build that used a suspended bundle has failed
  Effects effects;
};

// A held pod that is released to become the builder of a key.
struct BuilderCandidate {
  size_t pod = 0;     // index into Context::pods
  size_t target = 0;  // index into Context::targets; the pod prefers the nodes of that target
  // A prepared node of the target had capacity, which is reserved for this pod.
  bool has_capacity = false;
};

// Result of DecideBuilders().
struct Builds {
  Bundles bundles;
  std::vector<api::BuilderStatus> builders;
  std::string settings_hash;  // BuilderStatus::settings_hash of builds that start now
  std::vector<BuilderCandidate> candidates;
  std::map<size_t, std::vector<api::CaptureRequest>> captures;  // by index of the node
  std::string job_refusal;    // reason why no builder Job is created, for users
  std::string store_refusal;  // an agent's message about a failed publish; empty: none failed
  Reserved reserved;          // capacity for the builders
  std::vector<DesiredJob> jobs_to_create;
  std::vector<std::string> jobs_to_delete;
  std::vector<DesiredBuildRequests> requests;
  std::vector<api::HarvestStatus> harvests;  // status.harvests
  Effects effects;
};

// The context of the stages that follow the builds.
struct PlanContext : Context {
  PlanContext(const Context& context, const Acceptance& accepted, const Builds& built)
      : Context(context), acceptance(accepted), builds(built) {}

  const Acceptance& acceptance;
  const Builds& builds;
};

inline bool IsWarm(const PlanContext& context, const NodeState& node, const PodFactors& factors) {
  return IsWarm(context, context.builds.bundles, node, factors);
}

inline bool Fits(const PlanContext& context, size_t node, const PodShape& shape) {
  return Fits(context, context.builds.reserved, node, shape);
}

}  // namespace cachewarm::plan
