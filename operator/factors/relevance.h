// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Ranks the factors of a start by what the cache keys of engines contain. Pure.
namespace cachewarm::factors {

// How likely a factor that differs makes an engine compile again, in ascending order.
enum class Relevance {
  kNone,      // in the key of no known engine: it is neither recorded nor compared
  kPossible,  // nothing is known about it
  kLikely,    // changes which code is compiled, or where the engine looks for it
  kKey,       // part of the key of an engine's cache
};

// The known effect of a factor.
struct Knowledge {
  Relevance relevance = Relevance::kPossible;
  // Explains the effect, as the end of a sentence: "vLLM hashes it into its key"; never empty.
  std::string_view effect;
  std::string_view remedy;  // a sentence without its final period; never empty
  // True if the variable selects the directory of a cache. It is then the most likely cause of a
  // start that read nothing.
  bool selects_directory = false;
};

// Version of the rules. Factors that were recorded under other rules may lack a factor although the
// pod has it.
inline constexpr std::string_view kRulesVersion = "1";

// Returns what is known about the factor `name` (start_factors.h). `is_per_pod` says that
// Kubernetes sets it to a different value in each pod, such as the pod's IP.
Knowledge KnowledgeOf(std::string_view name, bool is_per_pod);

// Returns the name of a factor for users: "environment variable HOME", "argument --model".
std::string DescribeFactor(std::string_view name);

}  // namespace cachewarm::factors
