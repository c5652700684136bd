// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/referrers/artifact.h"

// Reads and extends a list of referrers: the image index of all manifests with the same subject.
// The list is served by a registry or stored under a tag (OCI distribution-spec 1.1 "Listing
// Referrers", "Referrers Tag Schema"). Pure.
namespace cachewarm::bundle {

inline constexpr int64_t kListingBytesMax = 4LL << 20;
inline constexpr size_t kReferrersMax = 10'000;

// Returns the manifests whose type is or may be `artifact_type`, or all if it is empty. Includes
// items without a type or with the type of the empty config, because some tools do not write the
// type. INVALID_ARGUMENT if `text` is malformed.
absl::StatusOr<std::vector<Descriptor>> ParseListing(std::string_view text,
                                                     std::string_view artifact_type);

// Returns the list `text` with an item for `referrer` at the end, which has the type and the
// annotations of `artifact`. Returns `text` unchanged if the list already contains `referrer`. If
// `text` is empty, returns a new list. RESOURCE_EXHAUSTED if the list is full (kReferrersMax items
// or kListingBytesMax bytes).
absl::StatusOr<std::string> AddToListing(std::string_view text, const Descriptor& referrer,
                                         const Artifact& artifact);

// Returns "sha256-<hex>", the tag of the list in registries without the referrers API.
std::string ListingTag(const Digest& subject);
// True if `tag` is the ListingTag() of some manifest.
bool IsListingTag(std::string_view tag);

}  // namespace cachewarm::bundle
