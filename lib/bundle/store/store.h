// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

// A new blob being written. Destroyed without Commit, nothing of it is ever seen by readers.
class BlobUpload : public Sink {
 public:
  // The blob is durable and has this name from now on; ALREADY_EXISTS is not an error. Once.
  virtual absl::StatusOr<Descriptor> Commit() = 0;
};

struct BlobRange {
  Digest digest;
  int64_t offset = 0;
  int64_t bytes = 0;  // exactly so many are delivered; 0 = nothing
};

// Where bundles are kept. `repository` ("team/llama") is below the store's base and passes
// CheckRepository. Thread-safe; every call may block, and ends soon after `stop` (CANCELLED).
// Reads may be repeated; writes too: the same bytes have the same name. NOT_FOUND: no such blob.
// UNAVAILABLE: try again. UNAUTHENTICATED and PERMISSION_DENIED: not with these credentials.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                                       std::stop_token stop) = 0;
  // Streams a range. A connection that breaks is resumed where it broke. The bytes are NOT
  // verified: who reads a range knows its frame digests.
  virtual absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                                std::stop_token stop) = 0;
  // `stop` covers the life of the upload.
  virtual absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                                std::stop_token stop) = 0;
  // Makes a blob of `from` readable in `repository` without moving it, where store and credentials
  // allow that. False: nothing happened, copy it. Stores without such a short way say so.
  virtual absl::StatusOr<bool> MountBlob(const std::string& from, const std::string& repository,
                                         const Digest& digest, std::stop_token stop);

  // At most kManifestBytesMax, verified against `digest`.
  virtual absl::StatusOr<std::string> ReadManifest(const std::string& repository,
                                                   const Digest& digest, std::stop_token stop) = 0;
  // What a tag points to now; NOT_FOUND when there is none.
  virtual absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                            std::stop_token stop) = 0;
  // The blobs it names must be there already. `tag` may be empty; else it points here afterwards.
  virtual absl::StatusOr<Digest> WriteManifest(const std::string& repository,
                                               const std::string& bytes, const std::string& tag,
                                               std::stop_token stop) = 0;

  // The manifests about `subject` (OCI "referrers") whose artifact type is, or may be,
  // `artifact_type`, in no order; at most kReferrersMax. None is no error, nor is a subject that is
  // not there. A list is what somebody said: ParseArtifact() of the manifest tells.
  virtual absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                            const Digest& subject,
                                                            const std::string& artifact_type,
                                                            std::stop_token stop) = 0;
  // Writes a manifest that ParseArtifact() reads; the blobs it names must be there already.
  // Registries without the referrers API keep a list that writers change in turns: of two at the
  // same moment one may be lost from it, so whoever must be sure looks and writes again.
  virtual absl::StatusOr<Digest> WriteReferrer(const std::string& repository,
                                               const std::string& bytes, std::stop_token stop) = 0;

  // Reachable and willing to answer us.
  virtual absl::Status Ping(std::stop_token stop) = 0;
};

// Path parts of [a-z0-9] with single separators . _ __ or dashes between, at most 255 bytes: OCI
// distribution-spec 1.1 "Pulling manifests".
absl::Status CheckRepository(std::string_view repository);
// [A-Za-z0-9_][A-Za-z0-9._-]{0,127}, same section.
absl::Status CheckTag(std::string_view tag);

// The whole of a small blob, verified; RESOURCE_EXHAUSTED when it is larger than `bytes_max`.
absl::StatusOr<std::string> ReadSmallBlob(Store& store, const std::string& repository,
                                          const Descriptor& blob, int64_t bytes_max,
                                          std::stop_token stop);
// Writes `bytes` unless they are there already; what is there under their name and damaged is
// replaced.
absl::StatusOr<Descriptor> WriteSmallBlob(Store& store, const std::string& repository,
                                          std::string_view bytes, std::stop_token stop);

}  // namespace cachewarm::bundle
