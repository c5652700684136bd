// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cli/arguments.h"
#include "lib/bundle/policy.h"

namespace cachewarm::cli {

// Options of verbs that unpack: --limit-files, --limit-file-bytes, --limit-bytes, --limit-ratio.
std::span<const Option> LimitOptionList();

// Returns the limits from these options.
bundle::Limits LimitsOf(const Arguments& arguments);

}  // namespace cachewarm::cli
