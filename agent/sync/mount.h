// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// The directory that the pods of one warmup with one run-as mount: <root>/<ns>/<name>/<uid>/
// <run-as>. The path is the same for every revision of the workload.
struct Mount {
  std::string ns;
  std::string name;
  std::string uid;     // of the warmup
  std::string run_as;  // "u1000" or "image"

  friend bool operator==(const Mount&, const Mount&) = default;
  friend auto operator<=>(const Mount&, const Mount&) = default;
};

// INVALID_ARGUMENT, naming the part, unless each part may be a directory name of ours: DNS names of
// Kubernetes, a uid of at most 64 letters, digits and dashes, and "image" or "u" with a uid number.
absl::Status CheckMount(const Mount& mount);

// The uid number of "u<uid>"; -1 for "image".
int64_t RunAsUser(std::string_view run_as);

// The name of a tree that holds exactly these bundles, whatever their order: 32 hex digits of
// sha256 over warmup uid, run-as, sorted digests, `renew`, which asks for a fresh tree of the same,
// and `attempt`: the trees that were damaged before it. The same wish gives the same name on any
// node and after any restart.
std::string GenerationId(const Mount& mount, std::vector<Digest> digests, int renew = 0,
                         int attempt = 0);

// The name of the `attempt`th tree without a bundle, counted from 0: "cold-" and 16 hex digits.
std::string ColdId(const Mount& mount, int attempt);
bool IsColdId(std::string_view id);
// True for names that GenerationId() and ColdId() give.
bool IsGenerationId(std::string_view id);

}  // namespace cachewarm::agent
