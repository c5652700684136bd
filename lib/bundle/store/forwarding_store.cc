// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/forwarding_store.h"

#include <utility>

namespace cachewarm::bundle {

ForwardingStore::ForwardingStore(std::unique_ptr<Store> inner)
    : owned_(std::move(inner)), inner_(*owned_) {}

ForwardingStore::ForwardingStore(Store& inner) : inner_(inner) {}

ForwardingStore::~ForwardingStore() = default;

absl::StatusOr<bool> ForwardingStore::HasBlob(const std::string& repository, const Digest& digest,
                                              std::stop_token stop) {
  return inner_.HasBlob(repository, digest, std::move(stop));
}

absl::Status ForwardingStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                       Sink& sink, std::stop_token stop) {
  return inner_.ReadBlob(repository, range, sink, std::move(stop));
}

absl::StatusOr<std::unique_ptr<BlobUpload>> ForwardingStore::StartBlob(
    const std::string& repository, std::stop_token stop) {
  return inner_.StartBlob(repository, std::move(stop));
}

absl::StatusOr<bool> ForwardingStore::MountBlob(const std::string& from,
                                                const std::string& repository, const Digest& digest,
                                                std::stop_token stop) {
  return inner_.MountBlob(from, repository, digest, std::move(stop));
}

absl::StatusOr<std::string> ForwardingStore::ReadManifest(const std::string& repository,
                                                          const Digest& digest,
                                                          std::stop_token stop) {
  return inner_.ReadManifest(repository, digest, std::move(stop));
}

absl::StatusOr<Digest> ForwardingStore::ResolveTag(const std::string& repository,
                                                   const std::string& tag, std::stop_token stop) {
  return inner_.ResolveTag(repository, tag, std::move(stop));
}

absl::StatusOr<Digest> ForwardingStore::WriteManifest(const std::string& repository,
                                                      const std::string& bytes,
                                                      const std::string& tag,
                                                      std::stop_token stop) {
  return inner_.WriteManifest(repository, bytes, tag, std::move(stop));
}

absl::StatusOr<std::vector<Descriptor>> ForwardingStore::Referrers(const std::string& repository,
                                                                   const Digest& subject,
                                                                   const std::string& artifact_type,
                                                                   std::stop_token stop) {
  return inner_.Referrers(repository, subject, artifact_type, std::move(stop));
}

absl::StatusOr<Digest> ForwardingStore::WriteReferrer(const std::string& repository,
                                                      const std::string& bytes,
                                                      std::stop_token stop) {
  return inner_.WriteReferrer(repository, bytes, std::move(stop));
}

absl::Status ForwardingStore::Ping(std::stop_token stop) {
  return inner_.Ping(std::move(stop));
}

}  // namespace cachewarm::bundle
