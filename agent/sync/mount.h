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

// The directory that pods of one warmup with the same user mount:
// <root>/<ns>/<name>/<uid>/<run-as>. All revisions of the workload use the same path.
struct Mount {
  std::string ns;
  std::string name;
  std::string uid;     // uid of the warmup
  std::string run_as;  // "u1000" for user ID 1000, "image" for the user of the image

  friend bool operator==(const Mount&, const Mount&) = default;
  friend auto operator<=>(const Mount&, const Mount&) = default;
};

// Checks that each part is safe as a directory name: `ns` and `name` are DNS names, `uid` has at
// most 64 letters, digits and dashes, and `run_as` is "image" or "u" and a user ID. Errors:
// INVALID_ARGUMENT names the part.
absl::Status CheckMount(const Mount& mount);

// Returns the user ID of "u<ID>"; -1 for "image" and invalid text.
int64_t RunAsUser(std::string_view run_as);

// Returns the name of the tree with exactly these bundles, in any order: 32 hex digits of the
// SHA-256 over warmup uid, run-as, sorted digests, `renew` and `attempt`. `renew` is a counter in
// the spec, which the operator increments to request a fresh tree of the same bundles; `attempt` is
// the number of earlier trees of these bundles that were damaged. The same input gives the same
// name on all nodes and after restarts.
std::string GenerationId(const Mount& mount, std::vector<Digest> digests, int renew = 0,
                         int attempt = 0);

// Returns the name of a cold tree (a tree without a bundle): "cold-" and 16 hex digits. `attempt`,
// from 0, numbers the cold trees of one mount.
std::string ColdId(const Mount& mount, int attempt);
bool IsColdId(std::string_view id);
// Returns true for results of GenerationId() and ColdId().
bool IsGenerationId(std::string_view id);

// Returns "retired-<id>-<number>": the name of the tree `id` after RetireForeignTrees() moved it
// aside. No link leads to such a tree.
std::string RetiredName(std::string_view id, int number);
// Returns the generation of a RetiredName(); empty for any other text.
std::string RetiredGeneration(std::string_view name);

}  // namespace cachewarm::agent
