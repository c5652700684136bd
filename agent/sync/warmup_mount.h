// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

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

}  // namespace cachewarm::agent
