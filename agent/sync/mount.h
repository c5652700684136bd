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

// The directory that the pods of one warmup with one run-as mount:
// <root>/<ns>/<name>/<uid>/<run-as>. All revisions of the workload use the same path.
struct Mount {
  std::string ns;
  std::string name;
  std::string uid;     // uid of the warmup
  std::string run_as;  // "u1000" or "image"

  friend bool operator==(const Mount&, const Mount&) = default;
  friend auto operator<=>(const Mount&, const Mount&) = default;
};

// Checks that each part is safe as a directory name: DNS names of Kubernetes, a uid of at most 64
// letters, digits and dashes, and "image" or "u" with a uid number. Errors: INVALID_ARGUMENT names
// the part.
absl::Status CheckMount(const Mount& mount);

// Returns the uid number of "u<uid>"; -1 for "image".
int64_t RunAsUser(std::string_view run_as);

// Returns the name of the tree with exactly these bundles, in any order: 32 hex digits of sha256
// over warmup uid, run-as, sorted digests, `renew` (incremented to request a fresh tree of the same
// bundles) and `attempt` (number of damaged trees before it). The same input gives the same name on
// all nodes and after restarts.
std::string GenerationId(const Mount& mount, std::vector<Digest> digests, int renew = 0,
                         int attempt = 0);

// Returns the name of the `attempt`th tree without a bundle, counted from 0: "cold-" and 16 hex
// digits.
std::string ColdId(const Mount& mount, int attempt);
bool IsColdId(std::string_view id);
// Returns true for results of GenerationId() and ColdId().
bool IsGenerationId(std::string_view id);

}  // namespace cachewarm::agent
