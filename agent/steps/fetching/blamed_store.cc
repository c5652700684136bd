// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/blamed_store.h"

#include <utility>

#include "lib/bundle/store/telling_sink.h"

namespace cachewarm::agent {

absl::Status BlamedStore::ReadBlob(const std::string& repository, const bundle::BlobRange& range,
                                   bundle::Sink& sink, std::stop_token stop) {
  bundle::TellingSink told(sink);
  absl::Status read = inner().ReadBlob(repository, range, told, std::move(stop));
  return told.status().ok() ? Note(std::move(read)) : read;
}

absl::StatusOr<std::string> BlamedStore::ReadManifest(const std::string& repository,
                                                      const Digest& digest, std::stop_token stop) {
  return Note(inner().ReadManifest(repository, digest, std::move(stop)));
}

absl::StatusOr<std::vector<bundle::Descriptor>> BlamedStore::Referrers(
    const std::string& repository, const Digest& subject, const std::string& artifact_type,
    std::stop_token stop) {
  return Note(inner().Referrers(repository, subject, artifact_type, std::move(stop)));
}

}  // namespace cachewarm::agent
