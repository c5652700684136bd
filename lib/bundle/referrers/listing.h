// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/referrers/artifact.h"

// The image index in which a registry, or a tag of it, lists the manifests with one subject: OCI
// distribution-spec 1.1 "Listing Referrers" and "Referrers Tag Schema". Pure.
namespace cachewarm::bundle {

inline constexpr int64_t kListingBytesMax = 4LL << 20;
inline constexpr size_t kReferrersMax = 10'000;

// Those of `artifact_type`. Who wrote a list by hand may have left the type out, or put the
// config's there: such an item is taken too, its manifest tells.
absl::StatusOr<std::vector<Descriptor>> ParseListing(std::string_view text,
                                                     std::string_view artifact_type);

// `text` (empty: a new list) with `referrer` behind what it has; unchanged when it is there.
// RESOURCE_EXHAUSTED for a list that is full.
absl::StatusOr<std::string> AddToListing(std::string_view text, const Descriptor& referrer,
                                         const Artifact& artifact);

// "sha256-<hex>": the tag of the list, where the registry keeps none by itself.
std::string ListingTag(const Digest& subject);

}  // namespace cachewarm::bundle
