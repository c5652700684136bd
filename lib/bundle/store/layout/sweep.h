// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"
#include "lib/fs/dir.h"
#include "lib/fs/lock.h"

// Lists and collects image layouts on disk. A process may be killed at any point: the layout stays
// valid, and the next sweep continues.
namespace cachewarm::bundle {

// Returns the directories below `root` that hold an image layout, relative to `root`, sorted.
absl::StatusOr<std::vector<std::string>> FindLayouts(const fs::Dir& root, std::stop_token stop);

// Store::ListManifests() of the layout `repository`. The time of a publication is the mtime of the
// manifest's blob.
absl::StatusOr<ManifestList> ListLayout(const fs::Dir& repository, std::stop_token stop);

// Store::CheckUnchanged().
absl::Status CheckUnchangedInLayout(const fs::Dir& repository, const StoredManifest& listed);

// Store::DeleteManifest(). Removes the manifest from index.json, then its blob, under the lock of
// the index.
absl::Status DeleteFromLayout(const fs::Dir& repository, const StoredManifest& listed,
                              const fs::LockWait& wait);

// Restores the blobs that a killed sweep left in .removed/. The caller holds the lock of the index.
absl::Status RestoreRemoved(const fs::Dir& repository);

// Store::SweepBlobs(). Walks the blobs once, then holds the lock of the index for a limited number
// of them at a time, and each time finds out again which blobs are needed. Moves each blob out of
// the reach of writers (to .removed/) before it looks at its mtime, and moves it back if a writer
// has used it meanwhile. When it is cancelled, it ends between two such batches; the next sweep
// continues.
absl::StatusOr<SweepReport> SweepLayout(const fs::Dir& repository, const SweepRequest& request,
                                        const fs::LockWait& wait);

}  // namespace cachewarm::bundle
