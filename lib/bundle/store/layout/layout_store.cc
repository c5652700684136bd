// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/layout_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/layout/index_file.h"
#include "lib/bundle/store/layout/layout_upload.h"
#include "lib/bundle/store/layout/sweep.h"
#include "lib/fs/file.h"
#include "lib/fs/lock.h"

namespace cachewarm::bundle {
namespace {

constexpr char kLayoutText[] = R"({"imageLayoutVersion":"1.0.0"})";
constexpr mode_t kDirectoryMode = 0755;
constexpr size_t kPieceBytes = 256U << 10U;

// Rejects "blobs" as a path part: the repository "a/blobs" would lie inside the layout of "a".
absl::Status CheckLayoutRepository(const std::string& repository) {
  CW_RETURN_IF_ERROR(CheckRepository(repository));
  if (fmt::format("/{}/", repository).find("/blobs/") != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("repository \"{}\": no part may be \"blobs\" in an image layout", repository));
  }
  return absl::OkStatus();
}

// Fails if a blob that a manifest names is missing or has another size. Called before the manifest
// is written and while the index is locked, so that no sweep removes a blob in between and readers
// never find a manifest whose blobs are missing.
absl::Status CheckBlobs(const fs::Dir& repository, std::vector<Descriptor> blobs,
                        const Descriptor& config) {
  blobs.push_back(config);
  for (const Descriptor& blob : blobs) {
    const auto found = repository.Stat(BlobPath(blob.digest));
    if (!found.ok() || found->bytes != blob.bytes) {
      return absl::FailedPreconditionError(
          fmt::format("the manifest names blob {} of {} bytes, but the store has no such blob",
                      blob.digest.Short(), blob.bytes));
    }
  }
  return absl::OkStatus();
}

// True if the item is a manifest that has, or may have, `artifact_type`: some tools write no
// artifact type, or the media type of the config.
bool MayMatch(const IndexItem& item, std::string_view artifact_type) {
  return item.manifest.media_type == kManifestType &&
         (artifact_type.empty() || item.artifact_type == artifact_type ||
          item.artifact_type.empty() || item.artifact_type == kEmptyType);
}

}  // namespace

LayoutStore::LayoutStore(std::string directory, const Clock& clock)
    : directory_(std::move(directory)), clock_(clock) {}

absl::StatusOr<fs::Dir> LayoutStore::OpenRepository(const std::string& repository) const {
  CW_RETURN_IF_ERROR(CheckLayoutRepository(repository));
  CW_ASSIGN_OR_RETURN(const fs::Dir root, fs::Dir::Open(directory_));
  return root.OpenDir(repository);
}

absl::StatusOr<fs::Dir> LayoutStore::MakeRepository(const std::string& repository) const {
  CW_RETURN_IF_ERROR(CheckLayoutRepository(repository));
  CW_ASSIGN_OR_RETURN(const fs::Dir root, fs::Dir::OpenOrMake(directory_, kDirectoryMode));
  CW_RETURN_IF_ERROR(root.MakeDirs(repository, kDirectoryMode));
  CW_ASSIGN_OR_RETURN(fs::Dir dir, root.OpenDir(repository));
  CW_RETURN_IF_ERROR(dir.MakeDirs(kBlobs, kDirectoryMode));
  CW_RETURN_IF_ERROR(dir.MakeDirs(kUploads, kDirectoryMode));
  CW_ASSIGN_OR_RETURN(const bool marked, dir.Exists(kLayout));
  if (!marked) {
    CW_RETURN_IF_ERROR(ReplaceFile(dir, kLayout, kLayoutText));
  }
  return dir;
}

absl::StatusOr<bool> LayoutStore::HasBlob(const std::string& repository, const Digest& digest,
                                          std::stop_token /*stop*/) {
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return false;
  }
  CW_RETURN_IF_ERROR(dir.status());
  const absl::Status touched = dir->Touch(BlobPath(digest));
  if (touched.ok() || absl::IsNotFound(touched)) {
    return touched.ok();
  }
  // The blob belongs to another user, or the file system is read-only.
  return dir->Exists(BlobPath(digest));
}

absl::Status LayoutStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                   Sink& sink, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, OpenRepository(repository));
  CW_ASSIGN_OR_RETURN(const fs::Fd file, dir.OpenFile(BlobPath(range.digest)));
  std::vector<char> piece(kPieceBytes);
  for (int64_t done = 0; done < range.bytes;) {
    if (stop.stop_requested()) {
      return absl::CancelledError("reading was stopped");
    }
    const auto wanted = std::min(piece.size(), static_cast<size_t>(range.bytes - done));
    CW_ASSIGN_OR_RETURN(const size_t got,
                        fs::ReadAt(file, range.offset + done, piece.data(), wanted));
    if (got == 0) {
      return absl::DataLossError(
          fmt::format("blob {} ends after {} bytes", range.digest.Short(), range.offset + done));
    }
    CW_RETURN_IF_ERROR(sink.Write({piece.data(), got}));
    done += static_cast<int64_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlobUpload>> LayoutStore::StartBlob(const std::string& repository,
                                                                   std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(fs::Dir dir, MakeRepository(repository));
  return StartLayoutUpload(std::move(dir), std::move(stop));
}

absl::StatusOr<std::string> LayoutStore::ReadManifest(const std::string& repository,
                                                      const Digest& digest,
                                                      std::stop_token /*stop*/) {
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, OpenRepository(repository));
  CW_ASSIGN_OR_RETURN(std::string text, fs::ReadFile(dir, BlobPath(digest), kManifestBytesMax));
  if (DigestOf(text) != digest) {
    return absl::DataLossError(
        fmt::format("manifest {} does not match its digest", digest.Short()));
  }
  return text;
}

absl::StatusOr<Digest> LayoutStore::ResolveTag(const std::string& repository,
                                               const std::string& tag, std::stop_token /*stop*/) {
  CW_RETURN_IF_ERROR(CheckTag(tag));
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, OpenRepository(repository));
  CW_ASSIGN_OR_RETURN(const std::vector<IndexItem> items, ReadIndex(dir));
  const auto found = FindTag(items, tag);
  if (!found.has_value()) {
    return absl::NotFoundError(fmt::format("{}: no tag \"{}\"", dir.name(), tag));
  }
  return *found;
}

absl::StatusOr<Digest> LayoutStore::WriteManifest(const std::string& repository,
                                                  const std::string& bytes, const std::string& tag,
                                                  std::stop_token stop) {
  if (!tag.empty()) {
    CW_RETURN_IF_ERROR(CheckTag(tag));
  }
  CW_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(bytes));
  return StoreManifest(repository,
                       {.bytes = bytes, .layers = manifest.layers, .config = manifest.config},
                       {.tag = tag}, std::move(stop));
}

absl::StatusOr<Digest> LayoutStore::StoreManifest(const std::string& repository,
                                                  const NewManifest& manifest, IndexItem item,
                                                  std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const auto upload, StartBlob(repository, stop));
  CW_RETURN_IF_ERROR(upload->Write(manifest.bytes));
  item.manifest = {.media_type = std::string(kManifestType),
                   .digest = DigestOf(manifest.bytes),
                   .bytes = static_cast<int64_t>(manifest.bytes.size())};
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, OpenRepository(repository));
  CW_ASSIGN_OR_RETURN(const fs::Fd lock, LockIndex(dir, {.clock = clock_, .stop = stop}));
  CW_RETURN_IF_ERROR(RestoreRemoved(dir));
  CW_RETURN_IF_ERROR(CheckBlobs(dir, manifest.layers, manifest.config));
  // Under the lock, so that DeleteManifest() does not remove the manifest before it is listed.
  CW_RETURN_IF_ERROR(upload->Commit().status());
  CW_ASSIGN_OR_RETURN(std::vector<IndexItem> items, ReadIndex(dir));
  CW_RETURN_IF_ERROR(ReplaceIndex(dir, AddToIndex(std::move(items), item)));
  return item.manifest.digest;
}

absl::StatusOr<std::vector<Descriptor>> LayoutStore::Referrers(const std::string& repository,
                                                               const Digest& subject,
                                                               const std::string& artifact_type,
                                                               std::stop_token stop) {
  std::vector<Descriptor> found;
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return found;
  }
  CW_RETURN_IF_ERROR(dir.status());
  CW_ASSIGN_OR_RETURN(const std::vector<IndexItem> items, ReadIndex(*dir));
  for (const IndexItem& item : items) {
    if (!MayMatch(item, artifact_type)) {
      continue;
    }
    const auto text = ReadManifest(repository, item.manifest.digest, stop);
    if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsDataLoss(text.status())) {
      return text.status();
    }
    // Skip a damaged manifest: its subject is unknown.
    const auto artifact = text.ok() ? ParseArtifact(*text) : text.status();
    if (artifact.ok() && (artifact_type.empty() || artifact->type == artifact_type) &&
        artifact->subject.digest == subject) {
      found.push_back(item.manifest);
    }
  }
  return found;
}

absl::StatusOr<Digest> LayoutStore::WriteReferrer(const std::string& repository,
                                                  const std::string& bytes, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(bytes));
  return StoreManifest(repository,
                       {.bytes = bytes, .layers = artifact.layers, .config = artifact.config},
                       {.artifact_type = artifact.type}, std::move(stop));
}

absl::StatusOr<std::vector<std::string>> LayoutStore::ListRepositories(std::stop_token stop) {
  const auto root = fs::Dir::Open(directory_);
  if (absl::IsNotFound(root.status())) {
    return std::vector<std::string>();
  }
  CW_RETURN_IF_ERROR(root.status());
  return FindLayouts(*root, stop);
}

absl::StatusOr<ManifestList> LayoutStore::ListManifests(const std::string& repository,
                                                        std::stop_token stop) {
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return ManifestList{.complete = true};
  }
  CW_RETURN_IF_ERROR(dir.status());
  return ListLayout(*dir, std::move(stop));
}

absl::Status LayoutStore::CheckUnchanged(const std::string& repository,
                                         const StoredManifest& listed, std::stop_token /*stop*/) {
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(dir.status());
  return CheckUnchangedInLayout(*dir, listed);
}

absl::Status LayoutStore::DeleteManifest(const std::string& repository,
                                         const StoredManifest& listed, std::stop_token stop) {
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(dir.status());
  return DeleteFromLayout(*dir, listed, {.clock = clock_, .stop = std::move(stop)});
}

absl::StatusOr<SweepReport> LayoutStore::SweepBlobs(const std::string& repository,
                                                    const SweepRequest& request,
                                                    std::stop_token stop) {
  const auto dir = OpenRepository(repository);
  if (absl::IsNotFound(dir.status())) {
    return SweepReport{.supported = true};
  }
  CW_RETURN_IF_ERROR(dir.status());
  return SweepLayout(*dir, request, {.clock = clock_, .stop = std::move(stop)});
}

absl::Status LayoutStore::Ping(std::stop_token /*stop*/) {
  return fs::Dir::OpenOrMake(directory_, kDirectoryMode).status();
}

}  // namespace cachewarm::bundle
