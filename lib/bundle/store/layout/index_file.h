// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"
#include "lib/fs/lock.h"

// The files of one image layout on disk. `repository` is its directory.
namespace cachewarm::bundle {

inline constexpr char kIndex[] = "index.json";
inline constexpr char kLayout[] = "oci-layout";

// Returns the path of a blob, relative to the repository.
std::string BlobPath(const Digest& digest);

// Waits for the lock that guards index.json and the deletion of blobs.
absl::StatusOr<fs::Fd> LockIndex(const fs::Dir& repository, const fs::LockWait& wait);

// Returns the items of index.json; none if the file does not exist.
absl::StatusOr<std::vector<IndexItem>> ReadIndex(const fs::Dir& repository);
// Replaces index.json; durable on return. The caller holds the lock.
absl::Status ReplaceIndex(const fs::Dir& repository, const std::vector<IndexItem>& items);

// Replaces a file atomically: unfinished content exists only in .uploads/.
absl::Status ReplaceFile(const fs::Dir& repository, const char* path, std::string_view bytes);

}  // namespace cachewarm::bundle
