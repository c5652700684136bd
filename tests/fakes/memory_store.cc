// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/memory_store.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"

namespace cachewarm::bundle {
namespace {

constexpr size_t kPieceBytes = 256U << 10U;

absl::Status NoBlob(const Digest& digest) {
  return absl::NotFoundError(fmt::format("no blob {}", digest.Short()));
}

}  // namespace

class MemoryStore::Upload : public BlobUpload {
 public:
  Upload(MemoryStore& store, std::string repository, std::stop_token stop)
      : store_(store), repository_(std::move(repository)), stop_(std::move(stop)) {}

  absl::Status Write(std::string_view bytes) override {
    CW_RETURN_IF_ERROR(store_.BeginCall("Write", repository_, stop_));
    bytes_.append(bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<Descriptor> Commit(const Digest& expected) override {
    CW_RETURN_IF_ERROR(store_.BeginCall("Commit", repository_, stop_));
    Descriptor blob{.digest = DigestOf(bytes_), .bytes = static_cast<int64_t>(bytes_.size())};
    CW_RETURN_IF_ERROR(CheckWritten(blob.digest, expected));
    store_.StoreBlob(repository_, blob.digest, std::move(bytes_));
    return blob;
  }

 private:
  MemoryStore& store_;
  const std::string repository_;
  const std::stop_token stop_;
  std::string bytes_;
};

void MemoryStore::SetFault(Fault fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

bool MemoryStore::Corrupt(const std::string& repository, const Digest& digest, std::string bytes) {
  const std::lock_guard lock(mutex_);
  Repository& there = repositories_[repository];
  if (const auto found = there.manifests.find(digest); found != there.manifests.end()) {
    found->second = std::move(bytes);
    return true;
  }
  const auto found = there.blobs.find(digest);
  if (found == there.blobs.end()) {
    return false;
  }
  found->second = std::make_shared<const std::string>(std::move(bytes));
  return true;
}

absl::Status MemoryStore::BeginCall(std::string_view call, const std::string& repository,
                                    const std::stop_token& stop) const {
  if (stop.stop_requested()) {
    return absl::CancelledError("stopped");
  }
  CW_RETURN_IF_ERROR(CheckRepository(repository));
  Fault fault;
  {
    const std::lock_guard lock(mutex_);
    fault = fault_;
  }
  return fault ? fault(call) : absl::OkStatus();
}

void MemoryStore::StoreBlob(const std::string& repository, const Digest& digest,
                            std::string bytes) {
  const std::lock_guard lock(mutex_);
  repositories_[repository].blobs[digest] = std::make_shared<const std::string>(std::move(bytes));
}

absl::Status MemoryStore::CheckBlobs(const Repository& there, const Descriptor& config,
                                     const std::vector<Descriptor>& layers) {
  bool complete = there.blobs.contains(config.digest);
  for (const Descriptor& layer : layers) {
    complete = complete && there.blobs.contains(layer.digest);
  }
  return complete ? absl::OkStatus()
                  : absl::FailedPreconditionError("the manifest names a blob that does not exist");
}

absl::StatusOr<bool> MemoryStore::HasBlob(const std::string& repository, const Digest& digest,
                                          std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("HasBlob", repository, stop));
  const std::lock_guard lock(mutex_);
  return repositories_[repository].blobs.contains(digest);
}

absl::Status MemoryStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                   Sink& sink, std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("ReadBlob", repository, stop));
  std::shared_ptr<const std::string> blob;
  {
    const std::lock_guard lock(mutex_);
    const auto& blobs = repositories_[repository].blobs;
    const auto found = blobs.find(range.digest);
    if (found == blobs.end()) {
      return NoBlob(range.digest);
    }
    blob = found->second;
  }
  const auto offset = std::min(static_cast<size_t>(range.offset), blob->size());
  std::string_view rest = std::string_view(*blob).substr(offset, static_cast<size_t>(range.bytes));
  const bool short_blob = rest.size() != static_cast<size_t>(range.bytes);
  for (; !rest.empty(); rest.remove_prefix(std::min(kPieceBytes, rest.size()))) {
    if (stop.stop_requested()) {
      return absl::CancelledError("reading was stopped");
    }
    CW_RETURN_IF_ERROR(sink.Write(rest.substr(0, kPieceBytes)));
  }
  return short_blob ? absl::DataLossError("the blob ends too early") : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlobUpload>> MemoryStore::StartBlob(const std::string& repository,
                                                                   std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("StartBlob", repository, stop));
  return std::make_unique<Upload>(*this, repository, std::move(stop));
}

absl::StatusOr<std::string> MemoryStore::ReadManifest(const std::string& repository,
                                                      const Digest& digest, std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("ReadManifest", repository, stop));
  const std::lock_guard lock(mutex_);
  const auto& manifests = repositories_[repository].manifests;
  const auto found = manifests.find(digest);
  if (found == manifests.end()) {
    return absl::NotFoundError(fmt::format("no manifest {}", digest.Short()));
  }
  if (DigestOf(found->second) != digest) {
    return absl::DataLossError("the manifest does not match its digest");
  }
  return found->second;
}

absl::StatusOr<Digest> MemoryStore::ResolveTag(const std::string& repository,
                                               const std::string& tag, std::stop_token stop) {
  CW_RETURN_IF_ERROR(CheckTag(tag));
  CW_RETURN_IF_ERROR(BeginCall("ResolveTag", repository, stop));
  const std::lock_guard lock(mutex_);
  const auto& tags = repositories_[repository].tags;
  const auto found = tags.find(tag);
  if (found == tags.end()) {
    return absl::NotFoundError(fmt::format("no tag \"{}\"", tag));
  }
  return found->second;
}

absl::StatusOr<Digest> MemoryStore::WriteManifest(const std::string& repository,
                                                  const std::string& bytes, const std::string& tag,
                                                  std::stop_token stop) {
  if (!tag.empty()) {
    CW_RETURN_IF_ERROR(CheckTag(tag));
  }
  CW_RETURN_IF_ERROR(BeginCall("WriteManifest", repository, stop));
  CW_ASSIGN_OR_RETURN(const Manifest manifest, ParseManifest(bytes));
  const std::lock_guard lock(mutex_);
  Repository& there = repositories_[repository];
  CW_RETURN_IF_ERROR(CheckBlobs(there, manifest.config, manifest.layers));
  const Digest digest = DigestOf(bytes);
  there.manifests[digest] = bytes;
  there.published[digest] = SystemClock().Now();
  if (!tag.empty()) {
    there.tags[tag] = digest;
  }
  return digest;
}

absl::StatusOr<std::vector<Descriptor>> MemoryStore::Referrers(const std::string& repository,
                                                               const Digest& subject,
                                                               const std::string& artifact_type,
                                                               std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("Referrers", repository, stop));
  const std::lock_guard lock(mutex_);
  Repository& there = repositories_[repository];
  std::vector<Descriptor> found;
  for (const Descriptor& referrer : there.referrers[subject]) {
    const auto artifact = ParseArtifact(there.manifests[referrer.digest]);
    if (artifact.ok() && (artifact_type.empty() || artifact->type == artifact_type)) {
      found.push_back(referrer);
    }
  }
  return found;
}

absl::StatusOr<Digest> MemoryStore::WriteReferrer(const std::string& repository,
                                                  const std::string& bytes, std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("WriteReferrer", repository, stop));
  CW_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(bytes));
  const std::lock_guard lock(mutex_);
  Repository& there = repositories_[repository];
  CW_RETURN_IF_ERROR(CheckBlobs(there, artifact.config, artifact.layers));
  const Digest digest = DigestOf(bytes);
  if (there.manifests.insert_or_assign(digest, bytes).second) {
    there.referrers[artifact.subject.digest].push_back(
        {.media_type = std::string(kManifestType),
         .digest = digest,
         .bytes = static_cast<int64_t>(bytes.size())});
  }
  return digest;
}

absl::StatusOr<std::vector<std::string>> MemoryStore::ListRepositories(std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("ListRepositories", "all", stop));
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, repository] : repositories_) {
    if (!repository.manifests.empty()) {
      names.push_back(name);
    }
  }
  return names;
}

absl::StatusOr<ManifestList> MemoryStore::ListManifests(const std::string& repository,
                                                        std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("ListManifests", repository, stop));
  const std::lock_guard lock(mutex_);
  const Repository& there = repositories_[repository];
  ManifestList list{.complete = true};
  for (const auto& [digest, text] : there.manifests) {
    StoredManifest& item = list.manifests.emplace_back(StoredManifest{.digest = digest});
    for (const auto& [tag, target] : there.tags) {
      if (target == digest) {
        item.tags.push_back(tag);
      }
    }
    const auto published = there.published.find(digest);
    if (published != there.published.end()) {
      item.published = published->second;
    }
  }
  return list;
}

absl::Status MemoryStore::CheckUnchanged(const std::string& repository,
                                         const StoredManifest& listed, std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("CheckUnchanged", repository, stop));
  const std::lock_guard lock(mutex_);
  return CheckUnchangedIn(repositories_[repository], listed);
}

absl::Status MemoryStore::CheckUnchangedIn(const Repository& there, const StoredManifest& listed) {
  for (const auto& [tag, digest] : there.tags) {
    if (digest == listed.digest &&
        std::find(listed.tags.begin(), listed.tags.end(), tag) == listed.tags.end()) {
      return absl::FailedPreconditionError("the manifest has a new tag");
    }
  }
  const auto published = there.published.find(listed.digest);
  return published == there.published.end() || published->second == listed.published
             ? absl::OkStatus()
             : absl::FailedPreconditionError("the manifest was published again");
}

absl::Status MemoryStore::DeleteManifest(const std::string& repository,
                                         const StoredManifest& listed, std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("DeleteManifest", repository, stop));
  const std::lock_guard lock(mutex_);
  Repository& there = repositories_[repository];
  CW_RETURN_IF_ERROR(CheckUnchangedIn(there, listed));
  std::erase_if(there.tags, [&](const auto& each) { return each.second == listed.digest; });
  there.manifests.erase(listed.digest);
  there.published.erase(listed.digest);
  for (auto& [subject, referrers] : there.referrers) {
    std::erase_if(referrers, [&](const Descriptor& each) { return each.digest == listed.digest; });
  }
  return absl::OkStatus();
}

absl::StatusOr<SweepReport> MemoryStore::SweepBlobs(const std::string& repository,
                                                    const SweepRequest& /*request*/,
                                                    std::stop_token stop) {
  CW_RETURN_IF_ERROR(BeginCall("SweepBlobs", repository, stop));
  return SweepReport{};
}

absl::Status MemoryStore::Ping(std::stop_token stop) {
  return BeginCall("Ping", "ping", stop);
}

}  // namespace cachewarm::bundle
