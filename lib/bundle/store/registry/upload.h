// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/store/registry/session.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::bundle {

inline constexpr int64_t kChunkBytes = 8LL << 20;

struct UploadTarget {
  std::string repository_url;  // "http://host/v2/base/team/llama"
  std::string scope;
  int64_t chunk_bytes = kChunkBytes;
};

// Pushes one blob (distribution-spec 1.1 "Pushing blobs"): what fits into one chunk by POST and
// PUT, more by POST, a PATCH for each full chunk, and PUT. Holds one chunk in memory. The registry
// forgets an upload that is given up.
class RegistryUpload : public BlobUpload {
 public:
  RegistryUpload(Session& session, UploadTarget target, std::stop_token stop);

  absl::Status Write(std::string_view bytes) override;
  absl::StatusOr<Descriptor> Commit() override;

 private:
  absl::Status Open();
  absl::Status SendChunk();
  absl::Status Follow(const http::Response& response);
  absl::Status Close(const Digest& digest);

  Session& session_;
  const UploadTarget target_;
  const std::stop_token stop_;
  Sha256 hash_;
  std::string chunk_;
  int64_t sent_bytes_ = 0;
  std::string location_;  // empty before Open()
};

}  // namespace cachewarm::bundle
