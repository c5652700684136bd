// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::agent {

// Records whether the store failed while a fetch read from it. An error of the sink, for example a
// full disk, is not a failure of the store. Thread-safe.
class FaultAttributingStore final : public bundle::ForwardingStore {
 public:
  // `inner` must outlive this store.
  explicit FaultAttributingStore(bundle::Store& inner) : ForwardingStore(inner) {}

  bool has_failed() const { return has_failed_; }
  // Forgets the failures so far. Call it if the fetch can continue in spite of them.
  void ClearFault() { has_failed_ = false; }

  absl::Status ReadBlob(const std::string& repository, const bundle::BlobRange& range,
                        bundle::Sink& sink, std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<std::vector<bundle::Descriptor>> Referrers(const std::string& repository,
                                                            const Digest& subject,
                                                            const std::string& artifact_type,
                                                            std::stop_token stop) override;

 private:
  template <class Result>
  Result Attribute(Result result) {
    if (!result.ok()) {
      has_failed_ = true;
    }
    return result;
  }

  std::atomic<bool> has_failed_{false};
};

}  // namespace cachewarm::agent
