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

// Keeps one OCI image layout (image-spec 1.1 "image-layout") per repository below a directory,
// which may be a volume shared by several nodes. Any number of processes may read and write it at
// the same time: each blob is created by a rename, and index.json is replaced under a lock. The
// file that a killed writer leaves in .uploads/ is removed by the next writer.
//
// A writer that finds a blob with HasBlob() relies on it before any manifest refers to it.
// HasBlob() therefore sets the mtime of the blob, which is its age for SweepBlobs().
class LayoutStore : public Store {
 public:
  // `directory` is absolute and is created by the first write. `clock` must outlive the store.
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
  absl::StatusOr<std::vector<std::string>> ListRepositories(std::stop_token stop) override;
  absl::StatusOr<ManifestList> ListManifests(const std::string& repository,
                                             std::stop_token stop) override;
  absl::Status CheckUnchanged(const std::string& repository, const StoredManifest& listed,
                              std::stop_token stop) override;
  absl::Status DeleteManifest(const std::string& repository, const StoredManifest& listed,
                              std::stop_token stop) override;
  absl::StatusOr<SweepReport> SweepBlobs(const std::string& repository, const SweepRequest& request,
                                         std::stop_token stop) override;
  // Creates the directory if it is missing.
  absl::Status Ping(std::stop_token stop) override;

 private:
  absl::StatusOr<fs::Dir> OpenRepository(const std::string& repository) const;
  absl::StatusOr<fs::Dir> MakeRepository(const std::string& repository) const;
  struct NewManifest {
    const std::string& bytes;
    const std::vector<Descriptor>& layers;
    const Descriptor& config;
  };
  // Writes a manifest, sets its descriptor in `item`, and adds `item` to the index.
  absl::StatusOr<Digest> StoreManifest(const std::string& repository, const NewManifest& manifest,
                                       IndexItem item, std::stop_token stop);

  const std::string directory_;
  const Clock& clock_;
};

}  // namespace cachewarm::bundle
