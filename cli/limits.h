// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "lib/bundle/policy.h"

namespace cachewarm::cli {

// --limit-files, --limit-file-bytes, --limit-bytes, --limit-ratio: of every verb that unpacks.
std::span<const Option> LimitOptionList();

// bundle::Limits with what was given. INVALID_ARGUMENT names the option.
absl::StatusOr<bundle::Limits> LimitsOf(const Arguments& arguments);

}  // namespace cachewarm::cli
