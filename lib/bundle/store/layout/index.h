// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// index.json of an OCI image layout. Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr int64_t kIndexBytesMax = 4LL << 20;

struct IndexItem {
  Descriptor manifest;
  std::string tag;  // org.opencontainers.image.ref.name; empty: none
  std::string artifact_type = std::string(kArtifactType);  // empty: the writer did not say
};

absl::StatusOr<std::vector<IndexItem>> ParseIndex(std::string_view text);
absl::StatusOr<std::string> WriteIndex(const std::vector<IndexItem>& items);

// Adds `manifest` at the end, or moves it there. A `tag` that is not empty leaves the manifest that
// had it. Above `items_max` of one artifact type its oldest without a tag go: they stay readable by
// digest, and what referred to something does so no longer.
std::vector<IndexItem> AddToIndex(std::vector<IndexItem> items, const IndexItem& added,
                                  size_t items_max = 1000);

std::optional<Digest> FindTag(const std::vector<IndexItem>& items, std::string_view tag);

}  // namespace cachewarm::bundle
