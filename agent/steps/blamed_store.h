// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::agent {

// Hands every call on to a store, which must outlive it, and remembers whether the store itself
// failed: an error that a sink gave is its consumer's, for instance a full disk. Thread-safe.
class BlamedStore final : public bundle::Store {
 public:
  explicit BlamedStore(bundle::Store& inner) : inner_(inner) {}

  bool has_failed() const { return has_failed_; }
  // What failed until now was no hindrance.
  void Forgive() { has_failed_ = false; }

  absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                               std::stop_token stop) override;
  absl::Status ReadBlob(const std::string& repository, const bundle::BlobRange& range,
                        bundle::Sink& sink, std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<bundle::BlobUpload>> StartBlob(const std::string& repository,
                                                                std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteManifest(const std::string& repository, const std::string& bytes,
                                       const std::string& tag, std::stop_token stop) override;
  absl::StatusOr<std::vector<bundle::Descriptor>> Referrers(const std::string& repository,
                                                            const Digest& subject,
                                                            const std::string& artifact_type,
                                                            std::stop_token stop) override;
  absl::StatusOr<Digest> WriteReferrer(const std::string& repository, const std::string& bytes,
                                       std::stop_token stop) override;
  absl::Status Ping(std::stop_token stop) override;

 private:
  template <class Answer>
  Answer Note(Answer answer) {
    if (!answer.ok()) {
      has_failed_ = true;
    }
    return answer;
  }

  bundle::Store& inner_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace cachewarm::agent
