// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/api/names.h"
#include "lib/base/clock.h"

namespace cachewarm::gate {

inline const WallTime kCreated = ParseTime("2026-11-21T08:00:00Z").value();

// A pod with these scheduling gates, created at kCreated.
inline api::Pod Held(std::vector<std::string> gates = {std::string(api::kSchedulingGate)}) {
  api::Pod pod;
  pod.meta.name = "llama-0";
  pod.meta.uid = "u1";
  pod.meta.created = kCreated;
  pod.gates = std::move(gates);
  return pod;
}

}  // namespace cachewarm::gate
