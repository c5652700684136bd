// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lint/pod_template.h"

namespace cachewarm::lint {

// Warning: starts may miss, or the cache may be lost. Error: every start of another pod misses, or
// the engine fails.
enum class Severity { kWarning, kError };
std::string_view Name(Severity severity);

// A place at which a rule is broken.
struct Problem {
  const PodTemplate* pod = nullptr;
  std::string field;    // path inside the object
  std::string message;  // what was found there, and its consequence
};

// One rule. `check` returns the problems in the order of the input.
struct Rule {
  std::string_view name;
  Severity severity;
  std::string_view looks_at;
  std::string_view remedy;
  std::string_view known;  // issues and pull requests as project#number, with what they report
  std::vector<Problem> (*check)(const Input& input);
};

std::span<const Rule> AllRules();
// Returns the names of all rules, in the order of AllRules().
std::vector<std::string> RuleNames();

}  // namespace cachewarm::lint
