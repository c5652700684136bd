// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "cli/facts.h"
#include "cli/reference.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/transfer.h"

namespace cachewarm::cli {

// The repository and the tag under which a machine finds and publishes the bundle of its key.
struct BundleSource {
  OpenedReference store;
  Machine machine;
  bundle::KeyFiles keys;

  std::string tag() const { return TagOf(machine); }
};

// Reads the bundle `digest`, or in the second form the one under the tag, and checks that this
// machine may use it: signature, GPU type and CPU class. Errors: NOT_FOUND if the store has no such
// bundle; DATA_LOSS if it is damaged or not signed by one of `keys.public_key_file`;
// INVALID_ARGUMENT if it was built for another kind of machine; else the error of the store.
absl::StatusOr<bundle::Bundle> ReadUsableBundle(const BundleSource& source, const Digest& digest,
                                                std::stop_token stop);
absl::StatusOr<bundle::Bundle> ReadUsableBundle(const BundleSource& source, std::stop_token stop);

}  // namespace cachewarm::cli
