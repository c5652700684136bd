// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/blamed_store.h"

#include <string_view>
#include <utility>

namespace cachewarm::agent {
namespace {

// Remembers whether the consumer refused.
class ConsumerSink final : public bundle::Sink {
 public:
  explicit ConsumerSink(bundle::Sink& sink) : sink_(sink) {}
  absl::Status Write(std::string_view bytes) override {
    absl::Status written = sink_.Write(bytes);
    has_failed_ = has_failed_ || !written.ok();
    return written;
  }
  bool has_failed() const { return has_failed_; }

 private:
  bundle::Sink& sink_;
  bool has_failed_ = false;
};

}  // namespace

absl::StatusOr<bool> BlamedStore::HasBlob(const std::string& repository, const Digest& digest,
                                          std::stop_token stop) {
  return Note(inner_.HasBlob(repository, digest, std::move(stop)));
}

absl::Status BlamedStore::ReadBlob(const std::string& repository, const bundle::BlobRange& range,
                                   bundle::Sink& sink, std::stop_token stop) {
  ConsumerSink consumer(sink);
  absl::Status read = inner_.ReadBlob(repository, range, consumer, std::move(stop));
  return consumer.has_failed() ? read : Note(std::move(read));
}

absl::StatusOr<std::unique_ptr<bundle::BlobUpload>> BlamedStore::StartBlob(
    const std::string& repository, std::stop_token stop) {
  return Note(inner_.StartBlob(repository, std::move(stop)));
}

absl::StatusOr<std::string> BlamedStore::ReadManifest(const std::string& repository,
                                                      const Digest& digest, std::stop_token stop) {
  return Note(inner_.ReadManifest(repository, digest, std::move(stop)));
}

absl::StatusOr<Digest> BlamedStore::ResolveTag(const std::string& repository,
                                               const std::string& tag, std::stop_token stop) {
  return Note(inner_.ResolveTag(repository, tag, std::move(stop)));
}

absl::StatusOr<Digest> BlamedStore::WriteManifest(const std::string& repository,
                                                  const std::string& bytes, const std::string& tag,
                                                  std::stop_token stop) {
  return Note(inner_.WriteManifest(repository, bytes, tag, std::move(stop)));
}

absl::StatusOr<std::vector<bundle::Descriptor>> BlamedStore::Referrers(
    const std::string& repository, const Digest& subject, const std::string& artifact_type,
    std::stop_token stop) {
  return Note(inner_.Referrers(repository, subject, artifact_type, std::move(stop)));
}

absl::StatusOr<Digest> BlamedStore::WriteReferrer(const std::string& repository,
                                                  const std::string& bytes, std::stop_token stop) {
  return Note(inner_.WriteReferrer(repository, bytes, std::move(stop)));
}

absl::Status BlamedStore::Ping(std::stop_token stop) {
  return Note(inner_.Ping(std::move(stop)));
}

}  // namespace cachewarm::agent
