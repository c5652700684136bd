// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

inline constexpr char kBlobs[] = "blobs/sha256";
inline constexpr char kUploads[] = ".uploads";

// A blob that grows in .uploads/ of `repository` and is renamed into blobs/sha256/. Its file is
// locked while its writer lives; files that nobody has locked are removed here.
absl::StatusOr<std::unique_ptr<BlobUpload>> StartLayoutUpload(fs::Dir repository,
                                                              std::stop_token stop);

}  // namespace cachewarm::bundle
