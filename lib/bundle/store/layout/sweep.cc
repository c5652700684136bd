// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/sweep.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/index_file.h"
#include "lib/bundle/store/layout/layout_upload.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;

constexpr char kRemoved[] = ".removed";
constexpr mode_t kRemovedMode = 0700;
constexpr size_t kHexDigits = 64;
// Blobs that are removed under one lock: publishers wait for it at most 30 s.
constexpr size_t kBatch = 128;
constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

WallTime TimeOf(int64_t mtime_ns) {
  return WallTime(Duration(mtime_ns / kNanosecondsPerMillisecond));
}

bool IsBlobName(std::string_view text) {
  return text.size() == kHexDigits && IsLowerHex(text);
}

// Adds the digests of the descriptors in the member `name`, an object or a list of objects.
void AddDescriptors(const Json& manifest, const char* name, std::vector<Digest>& to) {
  const auto found = manifest.find(name);
  if (found == manifest.end()) {
    return;
  }
  const auto add = [&to](const Json& descriptor) {
    const auto digest = descriptor.is_object() ? descriptor.find("digest") : descriptor.end();
    if (digest != descriptor.end() && digest->is_string()) {
      if (auto parsed = Digest::Parse(digest->get_ref<const std::string&>()); parsed.ok()) {
        to.push_back(*std::move(parsed));
      }
    }
  };
  if (!found->is_array()) {
    add(*found);
    return;
  }
  for (const Json& each : *found) {
    add(each);
  }
}

struct References {
  std::vector<Digest> blobs;
  std::vector<Digest> manifests;
};

// Returns what a manifest or an image index refers to. Reads manifests of any type, because other
// tools may have written some of them.
absl::StatusOr<References> ReadReferences(const std::string& text) {
  CW_ASSIGN_OR_RETURN(const Json json, codec::ParseJson(text, kManifestLimits));
  if (!json.is_object()) {
    return absl::InvalidArgumentError("expected an object");
  }
  References references;
  for (const char* name : {"config", "layers", "blobs"}) {
    AddDescriptors(json, name, references.blobs);
  }
  AddDescriptors(json, "manifests", references.manifests);
  return references;
}

// Returns the digests of all blobs that `roots` need: themselves, and what they refer to. A root
// that does not exist needs nothing.
absl::StatusOr<std::set<Digest>> Reachable(const fs::Dir& repository, std::vector<Digest> roots,
                                           const std::stop_token& stop) {
  std::set<Digest> needed;
  while (!roots.empty()) {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped while reading manifests");
    }
    const Digest digest = std::move(roots.back());
    roots.pop_back();
    if (!needed.insert(digest).second) {
      continue;
    }
    const auto text = fs::ReadFile(repository, BlobPath(digest), kManifestBytesMax);
    if (absl::IsNotFound(text.status())) {
      continue;
    }
    const auto references =
        text.ok() && DigestOf(*text) == digest
            ? ReadReferences(*text)
            : (text.ok() ? absl::DataLossError("it does not match its digest") : text.status());
    // RESOURCE_EXHAUSTED: the file is larger than a manifest may be.
    if (IsRetryable(references.status()) && !absl::IsResourceExhausted(references.status())) {
      return references.status();
    }
    if (!references.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("{}: manifest {} cannot be read, so that its blobs are unknown: {}; delete "
                      "the manifest or restore its blob, then collect again",
                      repository.name(), digest.Short(), Message(references.status())));
    }
    needed.insert(references->blobs.begin(), references->blobs.end());
    roots.insert(roots.end(), references->manifests.begin(), references->manifests.end());
  }
  return needed;
}

// The blobs that the manifests of a repository need.
class NeededBlobs {
 public:
  // Everything passed must outlive this object.
  NeededBlobs(const fs::Dir& repository, const SweepRequest& request, const std::stop_token& stop)
      : repository_(repository), request_(request), stop_(stop) {}

  // Reads index.json. Reads the manifests again only if it lists other ones than at the last call,
  // because the content of a manifest never changes.
  absl::Status Update() {
    CW_ASSIGN_OR_RETURN(const std::vector<IndexItem> items, ReadIndex(repository_));
    std::vector<Digest> roots(request_.keep.begin(), request_.keep.end());
    for (const IndexItem& item : items) {
      if (!request_.without.contains(item.manifest.digest)) {
        roots.push_back(item.manifest.digest);
      }
    }
    if (roots != roots_) {
      CW_ASSIGN_OR_RETURN(digests_, Reachable(repository_, roots, stop_));
      roots_ = std::move(roots);
    }
    return absl::OkStatus();
  }
  bool Contains(const std::string& blob_name) const {
    return digests_.contains(Digest::FromHex(blob_name));
  }

 private:
  const fs::Dir& repository_;
  const SweepRequest& request_;
  const std::stop_token& stop_;
  std::vector<Digest> roots_;
  std::set<Digest> digests_;
};

// Returns the names and bytes of blobs that are not needed and not younger than `limit`.
absl::StatusOr<std::map<std::string, int64_t>> FindUnneeded(const fs::Dir& repository,
                                                            const NeededBlobs& needed,
                                                            WallTime limit,
                                                            const std::stop_token& stop) {
  std::map<std::string, int64_t> found;
  CW_RETURN_IF_ERROR(fs::Walk(repository, kBlobs, {}, [&](const fs::WalkEntry& entry) {
    if (stop.stop_requested()) {
      return fs::WalkNext::kStop;
    }
    const bool is_blob = entry.stat.type == fs::FileType::kFile && IsBlobName(entry.path);
    if (is_blob && TimeOf(entry.stat.mtime_ns) <= limit && !needed.Contains(entry.path)) {
      found.emplace(entry.path, entry.stat.bytes);
    }
    return fs::WalkNext::kContinue;
  }));
  if (stop.stop_requested()) {
    return absl::CancelledError("stopped while looking for blobs to remove");
  }
  return found;
}

// Moves a blob from .removed/ back. A writer may write the same blob at the same time and rely on
// its mtime, so the blob gets the present time. NFS has no rename that keeps an existing name.
absl::Status RestoreBlob(const fs::Dir& repository, const std::string& name) {
  const std::string removed = fmt::format("{}/{}", kRemoved, name);
  const std::string blob = fmt::format("{}/{}", kBlobs, name);
  CW_ASSIGN_OR_RETURN(const bool exists, repository.Exists(blob));
  if (exists) {
    return repository.Remove(removed);
  }
  CW_RETURN_IF_ERROR(repository.Rename(removed, blob));
  return repository.Touch(blob);
}

// Removes one blob; returns false if a writer has used it since the sweep looked at it. A writer
// that looks for the blob finds it and sets its mtime before the rename, or does not find it and
// writes it again.
absl::StatusOr<bool> RemoveBlob(const fs::Dir& repository, const std::string& name,
                                WallTime limit) {
  const std::string removed = fmt::format("{}/{}", kRemoved, name);
  const absl::Status moved = repository.Rename(fmt::format("{}/{}", kBlobs, name), removed);
  if (!moved.ok()) {
    return absl::IsNotFound(moved) ? absl::StatusOr<bool>(false) : moved;
  }
  CW_ASSIGN_OR_RETURN(const fs::FileStat stat, repository.Stat(removed));
  if (TimeOf(stat.mtime_ns) > limit) {
    CW_RETURN_IF_ERROR(RestoreBlob(repository, name));
    return false;
  }
  CW_RETURN_IF_ERROR(repository.Remove(removed));
  return true;
}

// The blobs that a sweep may remove.
struct Candidates {
  std::map<std::string, int64_t> blobs;  // bytes by name
  WallTime limit{};                      // no blob is younger
};

absl::StatusOr<Candidates> FindCandidates(const fs::Dir& repository, Duration min_age,
                                          const fs::LockWait& wait, NeededBlobs& needed) {
  Candidates candidates;
  {
    CW_ASSIGN_OR_RETURN(const fs::Fd lock, LockIndex(repository, wait));
    CW_RETURN_IF_ERROR(RestoreRemoved(repository));
  }
  // Blobs are dated by the file system, which may be a server with another clock. Starting an
  // upload also removes the files of uploads whose writer was killed.
  CW_ASSIGN_OR_RETURN(const UploadFile now_file, UploadFile::Start(repository));
  CW_ASSIGN_OR_RETURN(const fs::FileStat now, now_file.Stat());
  candidates.limit = TimeOf(now.mtime_ns) - min_age;
  // Without the lock, so that publishers do not wait for the walk: SweepBatch() checks again.
  CW_RETURN_IF_ERROR(needed.Update());
  CW_ASSIGN_OR_RETURN(candidates.blobs,
                      FindUnneeded(repository, needed, candidates.limit, wait.stop));
  return candidates;
}

// Takes up to kBatch blobs from `candidates`, removes those that no manifest needs, all under one
// lock, and adds these to `report`.
absl::Status SweepBatch(const fs::Dir& repository, const fs::LockWait& wait, NeededBlobs& needed,
                        Candidates& candidates, SweepReport& report) {
  CW_ASSIGN_OR_RETURN(const fs::Fd lock, LockIndex(repository, wait));
  CW_RETURN_IF_ERROR(RestoreRemoved(repository));
  CW_RETURN_IF_ERROR(needed.Update());
  CW_RETURN_IF_ERROR(repository.MakeDirs(kRemoved, kRemovedMode));
  for (size_t done = 0; done < kBatch && !candidates.blobs.empty(); ++done) {
    const auto blob = candidates.blobs.extract(candidates.blobs.begin());
    if (needed.Contains(blob.key())) {
      continue;
    }
    CW_ASSIGN_OR_RETURN(const bool removed, RemoveBlob(repository, blob.key(), candidates.limit));
    report.blobs += removed ? 1 : 0;
    report.bytes += removed ? blob.mapped() : 0;
  }
  return absl::OkStatus();
}

// Returns the time of a publication; nullopt if the blob of the manifest is missing.
absl::StatusOr<std::optional<WallTime>> PublishedAt(const fs::Dir& repository,
                                                    const Digest& digest) {
  const auto stat = repository.Stat(BlobPath(digest));
  if (absl::IsNotFound(stat.status())) {
    return std::nullopt;
  }
  CW_RETURN_IF_ERROR(stat.status());
  return TimeOf(stat->mtime_ns);
}

// CheckUnchangedInLayout() with the items of index.json.
absl::Status CheckUnchanged(const fs::Dir& repository, const std::vector<IndexItem>& items,
                            const StoredManifest& listed) {
  StoredManifest now{.digest = listed.digest, .tags = {}, .published = std::nullopt};
  bool is_listed = false;
  for (const IndexItem& item : items) {
    const bool is_it = item.manifest.digest == listed.digest;
    is_listed = is_listed || is_it;
    if (is_it && !item.tag.empty()) {
      now.tags.push_back(item.tag);
    }
  }
  if (!is_listed) {
    return absl::OkStatus();
  }
  std::sort(now.tags.begin(), now.tags.end());
  CW_ASSIGN_OR_RETURN(now.published, PublishedAt(repository, listed.digest));
  return now == listed ? absl::OkStatus()
                       : absl::FailedPreconditionError(fmt::format(
                             "manifest {} was published again or tagged since it was listed",
                             listed.digest.Short()));
}

}  // namespace

absl::Status RestoreRemoved(const fs::Dir& repository) {
  std::vector<std::string> names;
  const absl::Status walked = fs::Walk(repository, kRemoved, {}, [&](const fs::WalkEntry& entry) {
    names.push_back(entry.path);
    return fs::WalkNext::kContinue;
  });
  if (absl::IsNotFound(walked)) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(walked);
  for (const std::string& name : names) {
    CW_RETURN_IF_ERROR(RestoreBlob(repository, name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FindLayouts(const fs::Dir& root, std::stop_token stop) {
  std::vector<std::string> found;
  CW_RETURN_IF_ERROR(fs::Walk(root, "", {}, [&](const fs::WalkEntry& entry) {
    if (stop.stop_requested()) {
      return fs::WalkNext::kStop;
    }
    const size_t slash = entry.path.rfind('/');
    const std::string name = slash == std::string::npos ? entry.path : entry.path.substr(slash + 1);
    if (entry.stat.type == fs::FileType::kDirectory) {
      const bool is_inside = name == "blobs" || name.starts_with('.');
      return is_inside ? fs::WalkNext::kSkipDirectory : fs::WalkNext::kContinue;
    }
    if (name == kLayout && slash != std::string::npos &&
        CheckRepository(entry.path.substr(0, slash)).ok()) {
      found.push_back(entry.path.substr(0, slash));
    }
    return fs::WalkNext::kContinue;
  }));
  if (stop.stop_requested()) {
    return absl::CancelledError("stopped while looking for repositories");
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::StatusOr<ManifestList> ListLayout(const fs::Dir& repository, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::vector<IndexItem> items, ReadIndex(repository));
  std::map<Digest, StoredManifest> found;
  for (const IndexItem& item : items) {
    StoredManifest& manifest = found[item.manifest.digest];
    manifest.digest = item.manifest.digest;
    if (!item.tag.empty()) {
      manifest.tags.push_back(item.tag);
    }
  }
  ManifestList list{.complete = true};
  for (auto& [digest, manifest] : found) {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped while listing manifests");
    }
    std::sort(manifest.tags.begin(), manifest.tags.end());
    CW_ASSIGN_OR_RETURN(manifest.published, PublishedAt(repository, digest));
    list.manifests.push_back(std::move(manifest));
  }
  return list;
}

absl::Status CheckUnchangedInLayout(const fs::Dir& repository, const StoredManifest& listed) {
  CW_ASSIGN_OR_RETURN(const std::vector<IndexItem> items, ReadIndex(repository));
  return CheckUnchanged(repository, items, listed);
}

absl::Status DeleteFromLayout(const fs::Dir& repository, const StoredManifest& listed,
                              const fs::LockWait& wait) {
  CW_ASSIGN_OR_RETURN(const fs::Fd lock, LockIndex(repository, wait));
  CW_ASSIGN_OR_RETURN(std::vector<IndexItem> items, ReadIndex(repository));
  CW_RETURN_IF_ERROR(CheckUnchanged(repository, items, listed));
  const auto removed = std::erase_if(
      items, [&](const IndexItem& item) { return item.manifest.digest == listed.digest; });
  if (removed > 0) {
    CW_RETURN_IF_ERROR(ReplaceIndex(repository, items));
  }
  return repository.Remove(BlobPath(listed.digest));
}

absl::StatusOr<SweepReport> SweepLayout(const fs::Dir& repository, const SweepRequest& request,
                                        const fs::LockWait& wait) {
  SweepReport report{.supported = true};
  CW_ASSIGN_OR_RETURN(const bool is_layout, repository.Exists(kLayout));
  if (!is_layout) {
    return report;
  }
  NeededBlobs needed(repository, request, wait.stop);
  if (request.dry_run) {
    CW_RETURN_IF_ERROR(needed.Update());
    CW_ASSIGN_OR_RETURN(
        const auto unneeded,
        FindUnneeded(repository, needed, wait.clock.Now() - request.min_age, wait.stop));
    for (const auto& [name, bytes] : unneeded) {
      ++report.blobs;
      report.bytes += bytes;
    }
    return report;
  }
  CW_ASSIGN_OR_RETURN(Candidates candidates,
                      FindCandidates(repository, request.min_age, wait, needed));
  while (!candidates.blobs.empty()) {
    if (wait.stop.stop_requested()) {
      return absl::CancelledError("stopped between two batches of blobs");
    }
    CW_RETURN_IF_ERROR(SweepBatch(repository, wait, needed, candidates, report));
  }
  repository.Remove(kRemoved).IgnoreError();
  return report;
}

}  // namespace cachewarm::bundle
