// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::fakes {

// labelSelector and fieldSelector of a list or watch, as the API server evaluates them.
struct KubeSelector {
  std::string labels;  // "a=b,c!=d,e in (f,g),h notin (i),j,!k"
  std::string fields;  // "metadata.name=a,spec.nodeName=b,status.phase!=c"

  // INVALID_ARGUMENT (400) for a selector that the fake or the API server does not know.
  absl::StatusOr<bool> Matches(const codec::Json& object) const;
};

}  // namespace cachewarm::fakes
