// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/store/forwarding_store.h"
#include "lib/bundle/store/limited/bandwidth.h"
#include "lib/bundle/store/limited/semaphore.h"

namespace cachewarm::bundle {

struct StoreLimits {
  int connections = 0;                   // at once and in each direction; 0: no limit
  std::shared_ptr<Bandwidth> downloads;  // of blobs, shared with other stores; null: no limit
};

// A store that is not asked more at once, nor read faster, than it is meant to be. Calls that read
// and calls that write wait in two lines, because a copy within one store writes while it reads:
// in one line such copies could wait for each other for ever. A sink or source must not call back
// into the same direction of the same store. Waiting ends at once with `stop` (CANCELLED). A Ping
// waits for nobody: it asks whether the store answers, not whether it is busy.
class LimitedStore : public ForwardingStore {
 public:
  LimitedStore(std::unique_ptr<Store> inner, StoreLimits limits);

  absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                               std::stop_token stop) override;
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;
  absl::StatusOr<bool> MountBlob(const std::string& from, const std::string& repository,
                                 const Digest& digest, std::stop_token stop) override;
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

 private:
  class Upload;

  const std::shared_ptr<Bandwidth> downloads_;
  Semaphore reading_;
  Semaphore writing_;
};

}  // namespace cachewarm::bundle
