// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

// Returns a warmup that is accepted, on nodes n1, n2, ... of one GPU type and CPU class.
inline fakes::SnapshotBuilder Accepted(int nodes = 1) {
  fakes::SnapshotBuilder builder;
  for (int i = 1; i <= nodes; ++i) {
    builder.Node({.name = "n" + std::to_string(i)});
  }
  builder.Accepted();
  return builder;
}

// Returns the latest build of `key`; nullptr if there is none.
inline const api::BuilderStatus* BuilderOf(const Plan& plan, const std::string& key) {
  for (const api::BuilderStatus& each : plan.status.builders) {
    if (each.key == key) {
      return &each;
    }
  }
  return nullptr;
}

// Returns a build of n1's key that failed at second `finished`.
inline api::BuilderStatus Failed(fakes::SnapshotBuilder& builder, int attempt, int finished,
                                 const std::string& reason = "BuilderTimeout") {
  return {.key = builder.Key("n1"),
          .gpu_type = "cpu",
          .cpu_class = fakes::kAvx512,
          .image = "server:1",
          .revision = "r1",
          .pod_uid = "uid-before",
          .pod_name = "before",
          .node = "n1",
          .state = api::BuilderState::kFailed,
          .attempt = attempt,
          .elected_time = fakes::At(finished - 1),
          .finished_time = fakes::At(finished),
          .reason = reason,
          .message = "last message"};
}

}  // namespace cachewarm::plan
