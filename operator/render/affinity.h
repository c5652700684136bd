// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// Adds rules to a pod's node affinity and keeps the present rules. The API server accepts only
// changes that narrow the affinity of a gated pod (KEP-3838). Because nodeSelectorTerms are ORed, a
// requirement is added to every present term; a new term is added only if there is none.
// Preferences may be added freely. Pure.
namespace cachewarm::render {

inline constexpr size_t kPreferredMax = 64;
inline constexpr size_t kRequiredMax = 1'000;  // maximum hostnames per In or NotIn; about 64 KB
// Weight of a preference, of 1 to 100. Low, so that users' own preferences can outweigh it.
inline constexpr int kPreferenceWeight = 10;

struct HostRules {
  std::vector<std::string> required;   // hostnames that the pod may use (In); empty: no rule
  std::vector<std::string> excluded;   // hostnames that the pod must not use (NotIn)
  std::vector<std::string> preferred;  // hostnames preferred with kPreferenceWeight
};

// Returns `affinity` (of a PodSpec, null if it has none) with the rules added. Truncates preferred
// hosts to kPreferredMax, required and excluded hosts to kRequiredMax. Idempotent.
codec::Json WithHostRules(const codec::Json& affinity, const HostRules& rules);
// The same for the affinity of `pod`, whose `object` must have spec.affinity.
codec::Json WithHostRules(const api::Pod& pod, const HostRules& rules);

}  // namespace cachewarm::render
