// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/forwarding_store.h"

#include <optional>
#include <utility>

#include "lib/base/status.h"

namespace cachewarm::bundle {

std::string_view NameOf(StoreOperation operation) {
  switch (operation) {
    case StoreOperation::kHasBlob:
      return "has_blob";
    case StoreOperation::kReadBlob:
      return "read_blob";
    case StoreOperation::kStartBlob:
      return "write_blob";
    case StoreOperation::kMountBlob:
      return "mount_blob";
    case StoreOperation::kReadManifest:
      return "read_manifest";
    case StoreOperation::kResolveTag:
      return "resolve_tag";
    case StoreOperation::kWriteManifest:
      return "write_manifest";
    case StoreOperation::kReferrers:
      return "referrers";
    case StoreOperation::kWriteReferrer:
      return "write_referrer";
    case StoreOperation::kListRepositories:
      return "list_repositories";
    case StoreOperation::kListManifests:
      return "list_manifests";
    case StoreOperation::kCheckUnchanged:
      return "check_unchanged";
    case StoreOperation::kDeleteManifest:
      return "delete_manifest";
    case StoreOperation::kSweepBlobs:
      return "sweep_blobs";
    case StoreOperation::kPing:
      return "ping";
  }
  return "";
}

bool IsWrite(StoreOperation operation) {
  return operation == StoreOperation::kStartBlob || operation == StoreOperation::kMountBlob ||
         operation == StoreOperation::kWriteManifest ||
         operation == StoreOperation::kWriteReferrer ||
         operation == StoreOperation::kDeleteManifest || operation == StoreOperation::kSweepBlobs;
}

ForwardingStore::ForwardingStore(std::unique_ptr<Store> inner)
    : owned_(std::move(inner)), inner_(*owned_) {}

ForwardingStore::ForwardingStore(Store& inner) : inner_(inner) {}

ForwardingStore::~ForwardingStore() = default;

absl::Status ForwardingStore::Call(StoreOperation /*operation*/, const std::stop_token& /*stop*/,
                                   Attempt attempt) {
  return attempt().status();
}

template <typename Run>
auto ForwardingStore::Forward(StoreOperation operation, const std::stop_token& stop, Run run) {
  using Result = decltype(run(std::declval<int64_t&>()));
  std::optional<Result> result;
  absl::Status status = Call(operation, stop, [&]() -> absl::StatusOr<int64_t> {
    int64_t manifest_bytes = 0;
    result.emplace(run(manifest_bytes));
    CW_RETURN_IF_ERROR(StatusOf(*result));
    return manifest_bytes;
  });
  return status.ok() ? *std::move(result) : Result(std::move(status));
}

absl::StatusOr<bool> ForwardingStore::HasBlob(const std::string& repository, const Digest& digest,
                                              std::stop_token stop) {
  return Forward(StoreOperation::kHasBlob, stop,
                 [&](int64_t&) { return inner_.HasBlob(repository, digest, stop); });
}

absl::Status ForwardingStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                       Sink& sink, std::stop_token stop) {
  return Forward(StoreOperation::kReadBlob, stop,
                 [&](int64_t&) { return inner_.ReadBlob(repository, range, sink, stop); });
}

absl::StatusOr<std::unique_ptr<BlobUpload>> ForwardingStore::StartBlob(
    const std::string& repository, std::stop_token stop) {
  return Forward(StoreOperation::kStartBlob, stop,
                 [&](int64_t&) { return inner_.StartBlob(repository, stop); });
}

absl::StatusOr<bool> ForwardingStore::MountBlob(const std::string& from,
                                                const std::string& repository, const Digest& digest,
                                                std::stop_token stop) {
  return Forward(StoreOperation::kMountBlob, stop,
                 [&](int64_t&) { return inner_.MountBlob(from, repository, digest, stop); });
}

absl::StatusOr<std::string> ForwardingStore::ReadManifest(const std::string& repository,
                                                          const Digest& digest,
                                                          std::stop_token stop) {
  return Forward(StoreOperation::kReadManifest, stop, [&](int64_t& manifest_bytes) {
    absl::StatusOr<std::string> text = inner_.ReadManifest(repository, digest, stop);
    manifest_bytes = text.ok() ? static_cast<int64_t>(text->size()) : 0;
    return text;
  });
}

absl::StatusOr<Digest> ForwardingStore::ResolveTag(const std::string& repository,
                                                   const std::string& tag, std::stop_token stop) {
  return Forward(StoreOperation::kResolveTag, stop,
                 [&](int64_t&) { return inner_.ResolveTag(repository, tag, stop); });
}

absl::StatusOr<Digest> ForwardingStore::WriteManifest(const std::string& repository,
                                                      const std::string& bytes,
                                                      const std::string& tag,
                                                      std::stop_token stop) {
  return Forward(StoreOperation::kWriteManifest, stop, [&](int64_t& manifest_bytes) {
    manifest_bytes = static_cast<int64_t>(bytes.size());
    return inner_.WriteManifest(repository, bytes, tag, stop);
  });
}

absl::StatusOr<std::vector<Descriptor>> ForwardingStore::Referrers(const std::string& repository,
                                                                   const Digest& subject,
                                                                   const std::string& artifact_type,
                                                                   std::stop_token stop) {
  return Forward(StoreOperation::kReferrers, stop, [&](int64_t&) {
    return inner_.Referrers(repository, subject, artifact_type, stop);
  });
}

absl::StatusOr<Digest> ForwardingStore::WriteReferrer(const std::string& repository,
                                                      const std::string& bytes,
                                                      std::stop_token stop) {
  return Forward(StoreOperation::kWriteReferrer, stop, [&](int64_t& manifest_bytes) {
    manifest_bytes = static_cast<int64_t>(bytes.size());
    return inner_.WriteReferrer(repository, bytes, stop);
  });
}

absl::StatusOr<std::vector<std::string>> ForwardingStore::ListRepositories(std::stop_token stop) {
  return Forward(StoreOperation::kListRepositories, stop,
                 [&](int64_t&) { return inner_.ListRepositories(stop); });
}

absl::StatusOr<ManifestList> ForwardingStore::ListManifests(const std::string& repository,
                                                            std::stop_token stop) {
  return Forward(StoreOperation::kListManifests, stop,
                 [&](int64_t&) { return inner_.ListManifests(repository, stop); });
}

absl::Status ForwardingStore::CheckUnchanged(const std::string& repository,
                                             const StoredManifest& listed, std::stop_token stop) {
  return Forward(StoreOperation::kCheckUnchanged, stop,
                 [&](int64_t&) { return inner_.CheckUnchanged(repository, listed, stop); });
}

absl::Status ForwardingStore::DeleteManifest(const std::string& repository,
                                             const StoredManifest& listed, std::stop_token stop) {
  return Forward(StoreOperation::kDeleteManifest, stop,
                 [&](int64_t&) { return inner_.DeleteManifest(repository, listed, stop); });
}

absl::StatusOr<SweepReport> ForwardingStore::SweepBlobs(const std::string& repository,
                                                        const SweepRequest& request,
                                                        std::stop_token stop) {
  return Forward(StoreOperation::kSweepBlobs, stop,
                 [&](int64_t&) { return inner_.SweepBlobs(repository, request, stop); });
}

absl::Status ForwardingStore::Ping(std::stop_token stop) {
  return Forward(StoreOperation::kPing, stop, [&](int64_t&) { return inner_.Ping(stop); });
}

}  // namespace cachewarm::bundle
