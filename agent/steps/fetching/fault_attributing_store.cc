// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/fault_attributing_store.h"

#include <utility>

#include "lib/bundle/store/counting_sink.h"

namespace cachewarm::agent {

absl::Status FaultAttributingStore::ReadBlob(const std::string& repository,
                                             const bundle::BlobRange& range, bundle::Sink& sink,
                                             std::stop_token stop) {
  bundle::CountingSink counting(sink);
  absl::Status read = inner().ReadBlob(repository, range, counting, std::move(stop));
  return counting.status().ok() ? Attribute(std::move(read)) : read;
}

absl::StatusOr<std::string> FaultAttributingStore::ReadManifest(const std::string& repository,
                                                                const Digest& digest,
                                                                std::stop_token stop) {
  return Attribute(inner().ReadManifest(repository, digest, std::move(stop)));
}

absl::StatusOr<std::vector<bundle::Descriptor>> FaultAttributingStore::Referrers(
    const std::string& repository, const Digest& subject, const std::string& artifact_type,
    std::stop_token stop) {
  return Attribute(inner().Referrers(repository, subject, artifact_type, std::move(stop)));
}

}  // namespace cachewarm::agent
