// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/bundle/store/store.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

// OCI image layouts (image-spec 1.1 "image-layout") below one directory, one per repository: a
// laptop's, or a volume that several nodes mount. Any number of programs may read and write it at
// once: blobs appear by rename, index.json is replaced under a lock. A writer that dies leaves a
// file in .uploads/ that the next one removes.
class LayoutStore : public Store {
 public:
  // `directory` is absolute; it is made by the first write. `clock` must outlive the store.
  LayoutStore(std::string directory, const Clock& clock);

  absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                               std::stop_token stop) override;
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteManifest(const std::string& repository, const std::string& bytes,
                                       const std::string& tag, std::stop_token stop) override;
  absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                    const Digest& subject,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteReferrer(const std::string& repository, const std::string& bytes,
                                       std::stop_token stop) override;
  // Makes the directory when it is missing.
  absl::Status Ping(std::stop_token stop) override;

 private:
  absl::StatusOr<fs::Dir> OpenRepository(const std::string& repository) const;
  absl::StatusOr<fs::Dir> MakeRepository(const std::string& repository) const;
  // Writes the blob of a manifest and lists it as `item`, whose descriptor is filled in here.
  absl::StatusOr<Digest> StoreManifest(const std::string& repository, const std::string& bytes,
                                       IndexItem item, std::stop_token stop);

  const std::string directory_;
  const Clock& clock_;
};

}  // namespace cachewarm::bundle
