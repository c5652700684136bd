// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::cli {

// Forwards to a store, and ends an upload with OUT_OF_RANGE as soon as all uploads together have
// more than `bytes_max` bytes, so that a bundle that is too large is not stored. One thread at a
// time.
class SizedStore : public bundle::ForwardingStore {
 public:
  // Borrows `inner`. `bytes_max` 0: no limit. `present_bytes`, the bytes that are in the store
  // already, count toward the limit.
  SizedStore(bundle::Store& inner, int64_t bytes_max, int64_t present_bytes)
      : ForwardingStore(inner), bytes_max_(bytes_max), bytes_(present_bytes) {}

  absl::StatusOr<std::unique_ptr<bundle::BlobUpload>> StartBlob(const std::string& repository,
                                                                std::stop_token stop) override;

 private:
  class Upload;

  const int64_t bytes_max_;
  int64_t bytes_;
};

}  // namespace cachewarm::cli
