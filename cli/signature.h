// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/reference.h"
#include "lib/bundle/transfer.h"

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

// The manifest and config of a bundle, and the store that has its layers.
struct OpenedBundle {
  OpenedReference source;
  bundle::Bundle bundle;
};

// Opens the reference `text` as OpenReference() does, checks the signature if --key is given, and
// reads manifest and config. Errors: those of OpenedReference::Resolve(), CheckKey() and
// bundle::ReadBundle().
absl::StatusOr<OpenedBundle> OpenBundle(const std::string& text, const Arguments& arguments,
                                        const Console& console);

}  // namespace cachewarm::cli
