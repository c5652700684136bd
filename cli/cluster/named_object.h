// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {

// "deploy/llama" on a command line.
struct NamedObject {
  kube::Resource resource;
  std::string name;
};

// Parses KIND/NAME, where KIND is written as kubectl accepts it: the kind in any case, its plural
// or its short name, with or without the group ("deployments.apps"). Errors: usage errors that name
// the remedy.
absl::StatusOr<NamedObject> ParseNamedObject(std::string_view text);

}  // namespace cachewarm::cli
