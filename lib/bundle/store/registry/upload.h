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

// Pushes one blob (distribution-spec 1.1 "Pushing blobs"). A blob that fits into one chunk takes
// POST and PUT; a larger one takes POST, a PATCH for each full chunk, and PUT. Holds one chunk in
// memory.
//
// Resumes a PATCH or PUT that fails (broken connection, 5xx, 416, 429): asks the registry how many
// bytes it has and sends the rest of the chunk. The number of attempts without progress is limited.
// UNAVAILABLE if the registry has lost earlier chunks or has discarded the upload: the caller must
// then send the whole blob again. (distribution 2.8 accepts only the offset that is signed in the
// location of the upload, so with that registry a request can be resumed only if none of its bytes
// arrived.)
//
// Destroying an upload without Commit() deletes it in the registry (best effort, 1 s).
class RegistryUpload : public BlobUpload {
 public:
  RegistryUpload(Session& session, UploadTarget target, std::stop_token stop);
  ~RegistryUpload() override;

  // Continues an upload that the registry opened with this response.
  absl::Status Adopt(const http::Response& opened);

  absl::Status Write(std::string_view bytes) override;
  absl::StatusOr<Descriptor> Commit(const Digest& expected) override;

 private:
  absl::Status Open();
  // Sends the current chunk, repeatedly until the registry has all of it.
  absl::Status SendChunk();
  absl::Status Patch();
  absl::Status Close(const Digest& digest);
  absl::Status Put(const Digest& digest);
  // After the error `why`: waits, asks how many bytes the registry has, and drops those from the
  // chunk.
  absl::Status Recover(const absl::Status& why, RetryBudget& budget);
  absl::Status Resume(const http::Response& response);
  absl::StatusOr<bool> BlobExists(const Digest& digest);
  absl::Status Follow(const http::Response& response);

  Session& session_;
  const UploadTarget target_;
  const std::stop_token stop_;
  Sha256 hash_;
  std::string chunk_;       // bytes written that the registry does not have yet
  int64_t sent_bytes_ = 0;  // bytes that the registry has
  std::string location_;    // URL of the open upload; empty: none
};

}  // namespace cachewarm::bundle
