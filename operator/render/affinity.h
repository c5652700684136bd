// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/codec/json_fwd.h"

// Node affinity that is added to a pod's own and never takes its place. What may change on a gated
// pod is KEP-3838: terms are ORed, so a requirement goes into every term, and no term is added
// where there are some; preferences may be added freely. Pure.
namespace cachewarm::render {

inline constexpr size_t kPreferredMax = 64;
inline constexpr size_t kRequiredMax = 1'000;  // In or NotIn: some 64 KB of a pod, in each term
inline constexpr int kPreferenceWeight = 10;   // of 1 to 100: below what users usually write

struct HostRules {
  std::vector<std::string> required;   // kubernetes.io/hostname In; empty: no rule
  std::vector<std::string> excluded;   // kubernetes.io/hostname NotIn
  std::vector<std::string> preferred;  // preferred, weight kPreferenceWeight
};

// `affinity` (a PodSpec's, null when it has none) with the rules added; what is preferred is cut to
// kPreferredMax, what is required or excluded to kRequiredMax. Adding the same rules again changes
// nothing more.
codec::Json WithHostRules(const codec::Json& affinity, const HostRules& rules);

}  // namespace cachewarm::render
