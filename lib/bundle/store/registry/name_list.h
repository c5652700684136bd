// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// Parses one page of a list of names, {"tags": [...]} or {"repositories": [...]} (OCI
// distribution-spec 1.1 "Listing Tags"; the catalog of docker's Registry API V2). `member` selects
// the list, which may be null. INVALID_ARGUMENT if `text` is malformed. Pure.
absl::StatusOr<std::vector<std::string>> ParseNameList(std::string_view text,
                                                       std::string_view member);

}  // namespace cachewarm::bundle
