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
// PUT, more by POST, a PATCH for each full chunk, and PUT. Holds one chunk in memory.
//
// A PATCH or PUT that breaks off (connection, 5xx, 416, 429) is continued: the registry is asked
// how much it has, and gets what is missing of the chunk; tries without progress are limited.
// UNAVAILABLE when it has less than the chunk's beginning, or forgot the upload: only the whole
// blob can be sent again then. (distribution 2.8 signs what it has into the upload's location and
// answers no other: there, only what did not reach it at all is continued.)
// An upload that is given up is deleted there (best effort, 1 s).
class RegistryUpload : public BlobUpload {
 public:
  RegistryUpload(Session& session, UploadTarget target, std::stop_token stop);
  ~RegistryUpload() override;

  // Takes up an upload that the registry opened with this answer.
  absl::Status Adopt(const http::Response& opened);

  absl::Status Write(std::string_view bytes) override;
  absl::StatusOr<Descriptor> Commit() override;

 private:
  absl::Status Open();
  // Until the registry has the whole chunk.
  absl::Status SendChunk();
  absl::Status Patch();
  absl::Status Close(const Digest& digest);
  absl::Status Put(const Digest& digest);
  // Waits, asks what the registry has, and drops that from the chunk.
  absl::Status Recover(const absl::Status& why, RetryBudget& budget);
  absl::Status Resume(const http::Response& response);
  absl::StatusOr<bool> BlobExists(const Digest& digest);
  absl::Status Follow(const http::Response& response);

  Session& session_;
  const UploadTarget target_;
  const std::stop_token stop_;
  Sha256 hash_;
  std::string chunk_;       // what the registry lacks of what was written
  int64_t sent_bytes_ = 0;  // what it has
  std::string location_;    // of the upload; empty: none is open
};

}  // namespace cachewarm::bundle
