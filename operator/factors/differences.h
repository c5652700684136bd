// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/factors/relevance.h"
#include "operator/factors/start_factors.h"

// Compares the factors of two starts. Pure.
namespace cachewarm::factors {

enum class DifferenceKind {
  kChanged,
  kOnlyBuilder,  // only the builder has the factor
  kOnlyPod,      // only the pod has the factor
  kPerPod,       // Kubernetes sets it to a different value in each pod, or on each node
};

struct Difference {
  std::string name;
  DifferenceKind kind = DifferenceKind::kChanged;
  std::string builder;  // values that are not hashed; else empty
  std::string pod;
  Knowledge knowledge;
  friend bool operator==(const Difference& a, const Difference& b) { return a.name == b.name; }
};

// Result of the comparison.
struct Comparison {
  // The most relevant difference first.
  std::vector<Difference> differences;
  // True if hashed factors were not compared, because the salt has changed since.
  bool is_salt_changed = false;
};

// How the engine used the cache: the rank of a difference depends on it.
enum class Usage {
  kRead,    // it read the cache and compiled all the same
  kUnread,  // it did not read the cache
};

// Compares a builder with a pod. Leaves out a factor that only one side has if the other side may
// lack it for another reason: it was recorded under other rules, or cut, or is unknown. Leaves out
// values of the node if both pods ran on one node.
Comparison Differences(const StartFactors& builder, const StartFactors& pod, Usage usage);

}  // namespace cachewarm::factors
