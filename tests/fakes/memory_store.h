// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::bundle {

// Keeps bundles in memory. Implements the whole contract of Store.
class MemoryStore : public Store {
 public:
  // Called before every method of the store with the method's name ("ReadBlob"). If it returns an
  // error, the method fails with that error.
  using Fault = std::function<absl::Status(std::string_view call)>;
  void SetFault(Fault fault);
  // Overwrites a stored blob or manifest without any check. False if it does not exist.
  bool Corrupt(const std::string& repository, const Digest& digest, std::string bytes);

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
  absl::Status Ping(std::stop_token stop) override;

 private:
  struct Repository {
    std::map<Digest, std::shared_ptr<const std::string>> blobs;
    std::map<Digest, std::string> manifests;
    std::map<Digest, WallTime> published;
    std::map<std::string, Digest> tags;
    std::map<Digest, std::vector<Descriptor>> referrers;  // by subject
  };
  class Upload;

  static absl::Status CheckBlobs(const Repository& there, const Descriptor& config,
                                 const std::vector<Descriptor>& layers);
  static absl::Status CheckUnchangedIn(const Repository& there, const StoredManifest& listed);
  absl::Status BeginCall(std::string_view call, const std::string& repository,
                         const std::stop_token& stop) const;
  void StoreBlob(const std::string& repository, const Digest& digest, std::string bytes);

  mutable std::mutex mutex_;
  Fault fault_;
  std::map<std::string, Repository> repositories_;
};

}  // namespace cachewarm::bundle
