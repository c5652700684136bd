// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

// A Deployment without replicas on one node: only a Job can build for it.
inline fakes::SnapshotBuilder ScaledDown() {
  fakes::SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.in().workload.replicas = 0;
  builder.Accepted();
  return builder;
}

// Applies the plan's Jobs and status as the API server would.
inline std::string Apply(fakes::SnapshotBuilder& builder, const Plan& plan) {
  builder.status() = plan.status;
  for (const DesiredJob& job : plan.jobs_to_create) {
    builder.in().jobs.push_back({.name = job.name, .uid = "j", .created = builder.in().now});
  }
  return plan.jobs_to_create.empty() ? "" : plan.jobs_to_create[0].name;
}

inline std::shared_ptr<const codec::Json> Patch(std::string_view text) {
  return std::make_shared<const codec::Json>(codec::ParseJson(text).value());
}

}  // namespace cachewarm::plan
