// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/lint.h"

#include <algorithm>
#include <utility>

namespace cachewarm::lint {

std::vector<Finding> Lint(const Input& input, const std::set<std::string, std::less<>>& skipped) {
  std::vector<Finding> findings;
  for (const Rule& rule : AllRules()) {
    if (skipped.contains(rule.name)) {
      continue;
    }
    for (Problem& problem : rule.check(input)) {
      findings.push_back({.rule = &rule, .problem = std::move(problem)});
    }
  }
  // The templates are in one vector, so that their addresses have the order of the input.
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.problem.pod < b.problem.pod;
  });
  return findings;
}

}  // namespace cachewarm::lint
