// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "cli/reference.h"

namespace cachewarm::cli {

// Option of the verbs that read a bundle.
inline constexpr Option kPublicKeyOption{
    .name = "key",
    .value = "FILE",
    .help = "PEM file of public keys; one of them must have signed the bundle"};

// Checks that one of the keys in `file` signed the bundle `digest`; OK if `file` is empty. Errors:
// DATA_LOSS if none of the keys signed it; else the error of the store or the file.
absl::Status CheckKey(const OpenedReference& source, const Digest& digest, const std::string& file,
                      std::stop_token stop);

}  // namespace cachewarm::cli
