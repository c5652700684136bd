// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/lint/rules.h"

namespace cachewarm::lint {

struct Finding {
  const Rule* rule = nullptr;
  Problem problem;
};

// Applies every rule whose name is not in `skipped`. Returns the findings by object in the order of
// the input, and for each object in the order of AllRules(). The findings point into `input`.
std::vector<Finding> Lint(const Input& input, const std::set<std::string, std::less<>>& skipped);

}  // namespace cachewarm::lint
