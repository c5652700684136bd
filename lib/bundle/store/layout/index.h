// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// Reads and writes index.json of an OCI image layout. Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr int64_t kIndexBytesMax = 4LL << 20;

struct IndexItem {
  Descriptor manifest;
  std::string tag;  // annotation org.opencontainers.image.ref.name; empty: none
  std::string artifact_type = std::string(kArtifactType);  // empty if index.json has none
};

// Parses index.json. INVALID_ARGUMENT, naming the field, if it is malformed.
absl::StatusOr<std::vector<IndexItem>> ParseIndex(std::string_view text);
absl::StatusOr<std::string> WriteIndex(const std::vector<IndexItem>& items);

// Returns `items` with `added` at the end:
//   - If an item of `items` has the tag of `added`, that item loses the tag.
//   - An older item of the same manifest is removed, unless it has a different tag. If `added` has
//     no tag, it takes over the tag of the removed item.
//   - If more than `items_max` items then have the artifact type of `added`, the oldest of these
//     that have no tag are dropped. Their manifests stay readable by digest, but Referrers() no
//     longer lists them.
std::vector<IndexItem> AddToIndex(std::vector<IndexItem> items, const IndexItem& added,
                                  size_t items_max = 1000);

// Returns the digest of the manifest that has `tag`; nullopt if there is none.
std::optional<Digest> FindTag(const std::vector<IndexItem>& items, std::string_view tag);

}  // namespace cachewarm::bundle
