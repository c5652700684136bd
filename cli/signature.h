// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/reference.h"

namespace cachewarm::cli {

// --key of the verbs that read a bundle.
Option PublicKeyOption();

// OK when one of the keys in the file of --key signed `digest`, or no --key was given. DATA_LOSS
// when none did; else the store's error, or the file's.
absl::Status CheckKey(const OpenedReference& source, const Digest& digest,
                      const Arguments& arguments, const Console& console);

}  // namespace cachewarm::cli
