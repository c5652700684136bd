// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "cli/reference.h"

namespace cachewarm::cli {

// --key of the verbs that read a bundle.
Option PublicKeyOption();

// OK when one of the keys in `file` signed `digest`, or `file` is empty. DATA_LOSS when none did;
// else the store's error, or the file's.
absl::Status CheckKey(const OpenedReference& source, const Digest& digest, const std::string& file,
                      std::stop_token stop);

}  // namespace cachewarm::cli
