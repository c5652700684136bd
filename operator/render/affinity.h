// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/codec/json_fwd.h"

// Adds node affinity to a pod's own, never replacing it. KEP-3838 restricts changes of a gated pod:
// terms are ORed, so a requirement is added to every term, and no term is added if there are any;
// preferences may be added freely. Pure.
namespace cachewarm::render {

inline constexpr size_t kPreferredMax = 64;
inline constexpr size_t kRequiredMax = 1'000;  // In or NotIn: about 64 KB per term
inline constexpr int kPreferenceWeight = 10;   // of 1 to 100: lower than usual weights

struct HostRules {
  std::vector<std::string> required;   // kubernetes.io/hostname In; empty: no rule
  std::vector<std::string> excluded;   // kubernetes.io/hostname NotIn
  std::vector<std::string> preferred;  // preferred, weight kPreferenceWeight
};

// Returns `affinity` (of a PodSpec, null if it has none) with the rules added. Truncates preferred
// hosts to kPreferredMax, required and excluded hosts to kRequiredMax. Idempotent.
codec::Json WithHostRules(const codec::Json& affinity, const HostRules& rules);

}  // namespace cachewarm::render
