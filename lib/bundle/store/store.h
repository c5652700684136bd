// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

// Writes one new blob. Readers see nothing of it before Commit() succeeds; destroying the upload
// earlier discards the bytes. After an error, start a new upload and send the whole blob again. One
// thread at a time.
class BlobUpload : public Sink {
 public:
  // Makes the blob durable and returns its digest and size; the media type stays empty. Succeeds
  // also if the blob exists already. If the digest of the written bytes is not `expected`, stores
  // nothing and returns DATA_LOSS; an empty `expected` accepts every digest. Every upload hashes
  // its bytes, so its caller does not need to. Call at most once, after the last Write().
  virtual absl::StatusOr<Descriptor> Commit(const Digest& expected) = 0;
  absl::StatusOr<Descriptor> Commit() { return Commit(Digest()); }
};

// Returns DATA_LOSS if `expected` is not empty and differs from `written`, the digest of the bytes
// of an upload.
absl::Status CheckWritten(const Digest& written, const Digest& expected);

// A part of a blob.
struct BlobRange {
  Digest digest;
  int64_t offset = 0;
  int64_t bytes = 0;  // exact length; 0 selects nothing
};

// A manifest as Store::ListManifests() found it.
struct StoredManifest {
  Digest digest;
  std::vector<std::string> tags;  // sorted
  std::optional<WallTime>
      published;  // when it was last written; nullopt if the store has no record

  friend bool operator==(const StoredManifest&, const StoredManifest&) = default;
};

struct ManifestList {
  std::vector<StoredManifest> manifests;  // sorted by digest
  // True if the list has every manifest of the repository. False if it has only those with a tag,
  // because the protocol of registries lists only tags: Referrers() finds further ones.
  bool complete = false;
};

// Arguments of Store::SweepBlobs().
struct SweepRequest {
  // Manifests that count as listed even if they are not, such as those that a node needs.
  std::set<Digest> keep;
  // Manifests that count as deleted, for a dry run.
  std::set<Digest> without;
  // Younger blobs stay: their writer may not have written the manifest yet.
  Duration min_age{0};
  bool dry_run = false;
};

struct SweepReport {
  // False if the store removes blobs by itself (a registry): nothing was swept.
  bool supported = false;
  int64_t blobs = 0;
  int64_t bytes = 0;
};

// Stores bundles as OCI manifests and blobs, which are named by the SHA-256 of their content and
// grouped in repositories. The name of a repository ("team/llama") is relative to the path in the
// URL of the store and must pass CheckRepository().
//
// Threads: every method is thread-safe and may block.
//
// Cancellation: every method returns CANCELLED soon after `stop` is requested. A write that is
// cancelled may have taken effect.
//
// Retries: every method is idempotent, because equal content has an equal name. It may therefore be
// called again after any error, but this helps only after UNAVAILABLE, the one transient error. The
// stores that OpenStore() returns already retry such a call a few times with backoff, except
// Ping().
//
// Errors of every method, in addition to those documented at the method:
//   INVALID_ARGUMENT                      the repository, the tag or the manifest is malformed
//   NOT_FOUND                             the blob, manifest or tag does not exist
//   DATA_LOSS                             the stored bytes do not match their digest
//   UNAUTHENTICATED, PERMISSION_DENIED    the credentials are missing or do not suffice
//   RESOURCE_EXHAUSTED                    the disk is full, or a response exceeds its limit
//   UNAVAILABLE                           the store cannot be reached, is overloaded or failed
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Returns true if the blob exists; its content is not verified. A repository that does not exist
  // has no blobs.
  virtual absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                                       std::stop_token stop) = 0;

  // Streams `range` to `sink`, in order, on the calling thread. Continues at the same byte after a
  // broken connection. The bytes are NOT verified: the caller must compare them with a digest. An
  // error of `sink` ends the read and is returned unchanged. After an error `sink` may have
  // received the beginning of the range. Fails if the blob ends before the range does.
  virtual absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                                std::stop_token stop) = 0;

  // Starts to write a new blob. `stop` also cancels the calls of the returned upload, which must
  // not outlive the store. A failed upload is not retried: see BlobUpload.
  virtual absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                                std::stop_token stop) = 0;

  // Makes a blob of repository `from` readable in `repository` without transferring it. Returns
  // false and changes nothing if the store does not support this, if the credentials do not allow
  // it or if `from` lacks the blob: the caller must then copy the blob. The default implementation
  // returns false.
  virtual absl::StatusOr<bool> MountBlob(const std::string& from, const std::string& repository,
                                         const Digest& digest, std::stop_token stop);

  // Returns the manifest named `digest`, at most kManifestBytesMax bytes, verified against that
  // digest.
  virtual absl::StatusOr<std::string> ReadManifest(const std::string& repository,
                                                   const Digest& digest, std::stop_token stop) = 0;

  // Returns the digest of the manifest that `tag` points to now.
  virtual absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                            std::stop_token stop) = 0;

  // Stores a bundle's manifest and returns its digest. Moves `tag` to it unless `tag` is empty; the
  // manifest that had the tag stays readable by its digest. Write the blobs first: if a blob that
  // the manifest names is missing, fails with an error for which a retry does not help.
  virtual absl::StatusOr<Digest> WriteManifest(const std::string& repository,
                                               const std::string& bytes, const std::string& tag,
                                               std::stop_token stop) = 0;

  // Lists the manifests that refer to `subject` (OCI "referrers") and whose artifact type is or may
  // be `artifact_type`; an empty `artifact_type` selects all types. Returns at most kReferrersMax
  // manifests, in any order, and an empty list if `subject` does not exist. The list is unverified:
  // read each manifest and check it with ParseArtifact().
  virtual absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                            const Digest& subject,
                                                            const std::string& artifact_type,
                                                            std::stop_token stop) = 0;

  // Stores a manifest that refers to another one (see ParseArtifact()) and returns its digest. The
  // blobs that it names must exist, as for WriteManifest(). In registries without the referrers
  // API, the list of referrers is kept under a tag, and the change of one of two concurrent writers
  // may be lost. Therefore list the referrers afterwards, and write again if this one is missing.
  virtual absl::StatusOr<Digest> WriteReferrer(const std::string& repository,
                                               const std::string& bytes, std::stop_token stop) = 0;

  // Lists the repositories of the store, sorted. UNIMPLEMENTED if the registry has no catalog or
  // does not show it to this user.
  virtual absl::StatusOr<std::vector<std::string>> ListRepositories(std::stop_token stop) = 0;

  // Lists the manifests of a repository. An empty list if the repository does not exist. A registry
  // may omit tags of manifests that are no bundle by their type or size.
  virtual absl::StatusOr<ManifestList> ListManifests(const std::string& repository,
                                                     std::stop_token stop) = 0;

  // Checks a manifest that ListManifests() or Referrers() returned. FAILED_PRECONDITION if it was
  // published again or got a tag since it was listed. OK if it does not exist. A registry compares
  // only the tags of the manifest's keys; list the manifests again to find other tags. It does not
  // notice that the current bundle of a key was published twice within an hour, nor that another
  // one was published again and replaced since.
  virtual absl::Status CheckUnchanged(const std::string& repository, const StoredManifest& listed,
                                      std::stop_token stop) = 0;

  // Deletes a manifest that ListManifests() or Referrers() returned, and its tags. Its blobs stay
  // until SweepBlobs(), or until the registry collects them. Delete its referrers first: they can
  // no longer be found afterwards. OK if the manifest does not exist. FAILED_PRECONDITION, without
  // a change, if CheckUnchanged() fails so; a registry cannot check and delete at once, so there a
  // publication during this call may lose its tag. UNIMPLEMENTED if the registry does not allow
  // deletion.
  virtual absl::Status DeleteManifest(const std::string& repository, const StoredManifest& listed,
                                      std::stop_token stop) = 0;

  // Deletes the blobs of a repository that no listed manifest refers to, directly or through
  // another manifest, and that are older than `request.min_age`. Safe while others write: a blob
  // that a writer has written or has found with HasBlob() within that age stays.
  // FAILED_PRECONDITION, without a change, if a listed manifest cannot be read. Does nothing in a
  // registry, which removes such blobs by itself.
  virtual absl::StatusOr<SweepReport> SweepBlobs(const std::string& repository,
                                                 const SweepRequest& request,
                                                 std::stop_token stop) = 0;

  // Checks that the store can be reached and accepts the credentials. Makes one attempt, so that
  // the result describes the present.
  virtual absl::Status Ping(std::stop_token stop) = 0;
};

// Checks the name of a repository: parts separated by "/", at most 255 bytes in all (OCI
// distribution-spec 1.1 "Pulling manifests"). A part consists of runs of [a-z0-9], with one
// separator between two runs: ".", "_", "__" or any number of dashes. INVALID_ARGUMENT if the name
// is malformed.
absl::Status CheckRepository(std::string_view repository);
// Checks a tag against [A-Za-z0-9_][A-Za-z0-9._-]{0,127} (same section). INVALID_ARGUMENT if it
// does not match.
absl::Status CheckTag(std::string_view tag);

// Returns the whole content of a small blob, verified against its digest. RESOURCE_EXHAUSTED if it
// is larger than `bytes_max`.
absl::StatusOr<std::string> ReadSmallBlob(Store& store, const std::string& repository,
                                          const Descriptor& blob, int64_t bytes_max,
                                          std::stop_token stop);
// Writes `bytes` as a blob unless an intact one exists already; replaces a damaged blob of the same
// digest. Returns the blob's descriptor.
absl::StatusOr<Descriptor> WriteSmallBlob(Store& store, const std::string& repository,
                                          std::string_view bytes, std::stop_token stop);

}  // namespace cachewarm::bundle
