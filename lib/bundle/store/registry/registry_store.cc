// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/registry_store.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/store/registry/download.h"
#include "lib/bundle/store/registry/name_list.h"
#include "lib/bundle/store/registry/upload.h"
#include "lib/http/text/percent.h"

namespace cachewarm::bundle {
namespace {

constexpr int kCreated = 201;
constexpr int kAccepted = 202;
constexpr size_t kNamesMax = 100'000;
constexpr size_t kNamesBytesMax = 16U << 20U;
constexpr int kRaceRetries = 4;
constexpr BackoffPolicy kRaceBackoff{.first = Duration{50}, .most = Duration{1000}};

}  // namespace

RegistryStore::RegistryStore(RegistryOptions options, std::unique_ptr<http::Client> client,
                             const Clock& clock, Random random)
    : options_(std::move(options)),
      clock_(clock),
      random_(std::move(random)),
      session_(options_.session, std::move(client), clock, random_) {}

absl::StatusOr<RegistryStore::Address> RegistryStore::AddressOf(
    const std::string& repository) const {
  CW_RETURN_IF_ERROR(CheckRepository(repository));
  const std::string full =
      options_.base.empty() ? repository : fmt::format("{}/{}", options_.base, repository);
  CW_RETURN_IF_ERROR(CheckRepository(full));
  return Address{.name = full,
                 .url = fmt::format("{}/v2/{}", session_.origin(), full),
                 .pull = fmt::format("repository:{}:pull", full),
                 .push = fmt::format("repository:{}:pull,push", full),
                 .remove = fmt::format("repository:{}:pull,delete", full)};
}

absl::StatusOr<bool> RegistryStore::HasBlob(const std::string& repository, const Digest& digest,
                                            std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  const std::string url = fmt::format("{}/blobs/{}", address.url, digest.ToString());
  CW_ASSIGN_OR_RETURN(
      const http::Response response,
      session_.Send({.method = http::Method::kHead, .url = url}, address.pull, stop));
  if (response.status == kNotFound) {
    return false;
  }
  // A response that redirects to the blob's content proves that the blob exists.
  if (response.status / 100 != 3) {
    CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("HEAD {}", url)));
  }
  return true;
}

absl::Status RegistryStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                     Sink& sink, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  const Download download{.url = fmt::format("{}/blobs/{}", address.url, range.digest.ToString()),
                          .scope = address.pull,
                          .range = range};
  return RunDownload(session_, download, sink, stop);
}

absl::StatusOr<std::unique_ptr<BlobUpload>> RegistryStore::StartBlob(const std::string& repository,
                                                                     std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  return std::make_unique<RegistryUpload>(session_,
                                          UploadTarget{.repository_url = address.url,
                                                       .scope = address.push,
                                                       .chunk_bytes = options_.chunk_bytes},
                                          std::move(stop));
}

absl::StatusOr<bool> RegistryStore::MountBlob(const std::string& from,
                                              const std::string& repository, const Digest& digest,
                                              std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address source, AddressOf(from));
  CW_ASSIGN_OR_RETURN(const Address target, AddressOf(repository));
  const std::string url =
      fmt::format("{}/blobs/uploads/?mount={}&from={}", target.url,
                  http::PercentEncode(digest.ToString()), http::PercentEncode(source.name));
  // The token must cover both repositories.
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send({.method = http::Method::kPost, .url = url},
                                    fmt::format("{} {}", target.push, source.pull), stop));
  if (response.status == kAccepted) {
    // The registry opened an upload instead of mounting the blob; the destructor of `opened`
    // cancels that upload.
    RegistryUpload opened(session_, {.repository_url = target.url, .scope = target.push}, stop);
    CW_RETURN_IF_ERROR(opened.Adopt(response));
    return false;
  }
  const absl::Status status = RegistryStatus(response, fmt::format("POST {}", url));
  if (IsRetryable(status)) {
    return status;
  }
  // False if the registry denies or does not support cross-repository mounts: the caller then
  // copies the blob.
  return response.status == kCreated;
}

absl::StatusOr<std::string> RegistryStore::GetManifest(const Address& address,
                                                       const std::string& reference,
                                                       std::stop_token stop) {
  const std::string url = fmt::format("{}/manifests/{}", address.url, reference);
  CW_ASSIGN_OR_RETURN(http::Response response,
                      session_.Send({.url = url,
                                     .headers = {{"Accept", std::string(kManifestType)}},
                                     .body_bytes_max = size_t{kManifestBytesMax}},
                                    address.pull, stop));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("GET {}", url)));
  return std::move(response.body);
}

absl::StatusOr<std::string> RegistryStore::ReadManifest(const std::string& repository,
                                                        const Digest& digest,
                                                        std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  CW_ASSIGN_OR_RETURN(std::string text, GetManifest(address, digest.ToString(), stop));
  if (DigestOf(text) != digest) {
    return absl::DataLossError(
        fmt::format("manifest {} does not match its digest", digest.Short()));
  }
  return text;
}

absl::StatusOr<Digest> RegistryStore::ResolveTag(const std::string& repository,
                                                 const std::string& tag, std::stop_token stop) {
  CW_RETURN_IF_ERROR(CheckTag(tag));
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  CW_ASSIGN_OR_RETURN(const std::string text, GetManifest(address, tag, stop));
  return DigestOf(text);
}

absl::StatusOr<Digest> RegistryStore::LookUpTag(const Address& address, const std::string& tag,
                                                std::stop_token stop) {
  const http::Request request{.method = http::Method::kHead,
                              .url = fmt::format("{}/manifests/{}", address.url, tag),
                              .headers = {{"Accept", std::string(kManifestType)}}};
  CW_ASSIGN_OR_RETURN(const http::Response response, session_.Send(request, address.pull, stop));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("HEAD {}", request.url)));
  if (auto digest = Digest::Parse(response.headers.Find("Docker-Content-Digest").value_or(""));
      digest.ok()) {
    return digest;
  }
  CW_ASSIGN_OR_RETURN(const std::string text, GetManifest(address, tag, std::move(stop)));
  return DigestOf(text);
}

absl::StatusOr<Digest> RegistryStore::WriteManifest(const std::string& repository,
                                                    const std::string& bytes,
                                                    const std::string& tag, std::stop_token stop) {
  if (!tag.empty()) {
    CW_RETURN_IF_ERROR(CheckTag(tag));
  }
  CW_RETURN_IF_ERROR(ParseManifest(bytes).status());
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  Digest digest = DigestOf(bytes);
  if (const auto key = ParseKeyTag(tag); key.has_value() && !key->published.has_value()) {
    CW_RETURN_IF_ERROR(WriteDatedTag(repository, bytes, tag, stop));
  }
  CW_RETURN_IF_ERROR(
      PutManifest(address, tag.empty() ? digest.ToString() : tag, bytes, std::move(stop)));
  return digest;
}

absl::StatusOr<std::vector<Descriptor>> RegistryStore::Referrers(const std::string& repository,
                                                                 const Digest& subject,
                                                                 const std::string& artifact_type,
                                                                 std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  return ReferrersAt(address).Read(subject, artifact_type, std::move(stop));
}

absl::StatusOr<Digest> RegistryStore::WriteReferrer(const std::string& repository,
                                                    const std::string& bytes,
                                                    std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(bytes));
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  Descriptor referrer{.media_type = std::string(kManifestType),
                      .digest = DigestOf(bytes),
                      .bytes = static_cast<int64_t>(bytes.size())};
  CW_RETURN_IF_ERROR(PutManifest(address, referrer.digest.ToString(), bytes, stop));
  CW_RETURN_IF_ERROR(ReferrersAt(address).Add(referrer, artifact, std::move(stop)));
  return std::move(referrer.digest);
}

ReferrerList RegistryStore::ReferrersAt(const Address& address) {
  return {session_, {.repository_url = address.url, .pull = address.pull, .push = address.push}};
}

absl::Status RegistryStore::PutManifest(const Address& address, const std::string& reference,
                                        const std::string& bytes, std::stop_token stop) {
  const http::Request request{.method = http::Method::kPut,
                              .url = fmt::format("{}/manifests/{}", address.url, reference),
                              .headers = {{"Content-Type", std::string(kManifestType)}},
                              .body = bytes};
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      SendManifest(request, address.push, std::move(stop)));
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("PUT {}", request.url)));
  const std::string digest = DigestOf(bytes).ToString();
  if (const auto named = response.headers.Find("Docker-Content-Digest");
      named.has_value() && *named != digest) {
    return absl::DataLossError(
        fmt::format("the registry stored the manifest as {} instead of {}", *named, digest));
  }
  return absl::OkStatus();
}

absl::StatusOr<http::Response> RegistryStore::SendManifest(const http::Request& request,
                                                           const std::string& scope,
                                                           std::stop_token stop) {
  for (int attempt = 0;; ++attempt) {
    auto response = session_.Send(request, scope, stop);
    // Repeat the request after DIGEST_INVALID: distribution 2.8 returns this error while another
    // writer commits one of the blobs, because the blob's link file is empty for a moment. The
    // digests are not the cause: the caller's parser has checked that they are well-formed.
    const bool raced = response.ok() && response->status == kBadRequest &&
                       response->body.find("DIGEST_INVALID") != std::string::npos;
    if (!raced || attempt == kRaceRetries) {
      return response;
    }
    if (!SleepFor(clock_, BackoffDelay(kRaceBackoff, attempt, random_()), stop)) {
      return absl::CancelledError("stopped while a manifest was written");
    }
  }
}

absl::Status RegistryStore::WriteDatedTag(const std::string& repository, const std::string& bytes,
                                          const std::string& tag, std::stop_token stop) {
  const Digest digest = DigestOf(bytes);
  const auto current = ResolveTag(repository, tag, stop);
  if (!current.ok() && !absl::IsNotFound(current.status())) {
    return current.status();
  }
  // Rounded, so that a bundle that is published all the time does not fill the list of tags.
  const WallTime now = clock_.Now();
  const bool is_current = current.ok() && *current == digest;
  const WallTime time = is_current ? std::chrono::floor<std::chrono::hours>(now) : now;
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  return PutManifest(address, DatedTag(tag, digest, time), bytes, std::move(stop));
}

absl::StatusOr<std::vector<std::string>> RegistryStore::ListNames(std::string url,
                                                                  const std::string& scope,
                                                                  std::string_view member,
                                                                  std::stop_token stop) {
  std::vector<std::string> names;
  for (;;) {
    CW_ASSIGN_OR_RETURN(const http::Response response,
                        session_.Send({.url = url, .body_bytes_max = kNamesBytesMax}, scope, stop));
    CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("GET {}", url)));
    CW_ASSIGN_OR_RETURN(const std::vector<std::string> page, ParseNameList(response.body, member));
    names.insert(names.end(), page.begin(), page.end());
    CW_ASSIGN_OR_RETURN(const std::optional<std::string> next,
                        NextPage(response.headers.Find("Link").value_or(""), url));
    if (!next.has_value()) {
      return names;
    }
    if (names.size() > kNamesMax || page.empty()) {
      return absl::ResourceExhaustedError(fmt::format(
          "GET {}: the list has more than {} names, or a page without a name", url, kNamesMax));
    }
    url = *next;
  }
}

absl::StatusOr<std::vector<std::string>> RegistryStore::ListRepositories(std::stop_token stop) {
  const auto all = ListNames(fmt::format("{}/v2/_catalog?n=1000", session_.origin()),
                             "registry:catalog:*", "repositories", std::move(stop));
  if (absl::IsUnauthenticated(all.status()) || absl::IsPermissionDenied(all.status()) ||
      absl::IsNotFound(all.status()) || absl::IsInvalidArgument(all.status()) ||
      absl::IsUnimplemented(all.status())) {
    return absl::UnimplementedError(
        fmt::format("the registry does not list its repositories to this user ({}); name them",
                    Message(all.status())));
  }
  CW_RETURN_IF_ERROR(all.status());
  std::vector<std::string> names;
  const std::string prefix = options_.base.empty() ? "" : options_.base + "/";
  for (const std::string& name : *all) {
    if (name.starts_with(prefix) && CheckRepository(name).ok()) {
      names.push_back(name.substr(prefix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> RegistryStore::ListTags(const Address& address,
                                                                 std::stop_token stop) {
  auto tags = ListNames(address.url + "/tags/list?n=1000", address.pull, "tags", std::move(stop));
  if (absl::IsNotFound(tags.status())) {
    return std::vector<std::string>();
  }
  CW_RETURN_IF_ERROR(tags.status());
  std::sort(tags->begin(), tags->end());
  return tags;
}

absl::StatusOr<ManifestList> RegistryStore::ListManifests(const std::string& repository,
                                                          std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  CW_ASSIGN_OR_RETURN(const std::vector<std::string> tags, ListTags(address, stop));
  std::map<Digest, StoredManifest> found;
  for (const std::string& tag : tags) {
    if (IsListingTag(tag) || !CheckTag(tag).ok()) {
      continue;
    }
    const auto digest = LookUpTag(address, tag, stop);
    if (absl::IsNotFound(digest.status()) || absl::IsResourceExhausted(digest.status())) {
      continue;  // it was deleted meanwhile, is no manifest of an image, or is too large for one
    }
    CW_RETURN_IF_ERROR(digest.status());
    StoredManifest& manifest = found[*digest];
    manifest.digest = *digest;
    manifest.tags.push_back(tag);
    const auto key = ParseKeyTag(tag);
    if (key.has_value() && key->published.has_value()) {
      manifest.published = std::max(manifest.published.value_or(*key->published), *key->published);
    }
  }
  ManifestList list;
  for (auto& [digest, manifest] : found) {
    list.manifests.push_back(std::move(manifest));
  }
  return list;
}

absl::Status RegistryStore::CheckUnchanged(const std::string& repository,
                                           const StoredManifest& listed, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  const auto was_listed = [&](const std::string& tag) {
    return std::binary_search(listed.tags.begin(), listed.tags.end(), tag);
  };
  absl::Status changed = absl::FailedPreconditionError(
      fmt::format("manifest {} was published again since it was listed", listed.digest.Short()));
  std::set<std::string> current;   // tags of keys that named the manifest
  std::set<std::string> replaced;  // those that named another one, or did not exist
  for (const std::string& tag : listed.tags) {
    if (const auto key = ParseKeyTag(tag); key.has_value()) {
      const std::string key_tag = KeyTagOf(key->key);
      (was_listed(key_tag) ? current : replaced).insert(key_tag);
    }
  }
  // If the manifest is published again under a tag that names it, only a further dated tag shows
  // it.
  std::vector<std::string> tags;
  if (!current.empty()) {
    CW_ASSIGN_OR_RETURN(tags, ListTags(address, stop));
  }
  for (const std::string& tag : tags) {
    const auto key = was_listed(tag) ? std::nullopt : ParseKeyTag(tag);
    if (key.has_value() && key->digest == listed.digest.Short()) {
      return changed;
    }
  }
  for (const std::string& tag : replaced) {
    const auto digest = LookUpTag(address, tag, stop);
    if (digest.ok() && *digest == listed.digest) {
      return changed;
    }
    if (!digest.ok() && !absl::IsNotFound(digest.status())) {
      return digest.status();
    }
  }
  return absl::OkStatus();
}

absl::Status RegistryStore::DeleteManifest(const std::string& repository,
                                           const StoredManifest& listed, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Address address, AddressOf(repository));
  CW_RETURN_IF_ERROR(CheckUnchanged(repository, listed, stop));
  CW_RETURN_IF_ERROR(RemoveManifest(address, listed.digest, stop));
  // In a registry without the referrers API, the list of referrers is a manifest of its own.
  CW_ASSIGN_OR_RETURN(const std::optional<Digest> list,
                      ReferrersAt(address).ListDigest(listed.digest, stop));
  return list.has_value() ? RemoveManifest(address, *list, std::move(stop)) : absl::OkStatus();
}

absl::Status RegistryStore::RemoveManifest(const Address& address, const Digest& digest,
                                           std::stop_token stop) {
  const http::Request request{
      .method = http::Method::kDelete,
      .url = fmt::format("{}/manifests/{}", address.url, digest.ToString())};
  CW_ASSIGN_OR_RETURN(const http::Response response,
                      session_.Send(request, address.remove, std::move(stop)));
  if (response.status == kNotFound) {
    return absl::OkStatus();
  }
  const absl::Status status = RegistryStatus(response, fmt::format("DELETE {}", request.url));
  const bool unsupported =
      response.status == kNotAllowed ||
      (response.status == kBadRequest && response.body.find("UNSUPPORTED") != std::string::npos);
  return unsupported ? absl::UnimplementedError(Message(status)) : status;
}

absl::StatusOr<SweepReport> RegistryStore::SweepBlobs(const std::string& repository,
                                                      const SweepRequest& /*request*/,
                                                      std::stop_token /*stop*/) {
  CW_RETURN_IF_ERROR(AddressOf(repository).status());
  return SweepReport{};
}

absl::Status RegistryStore::Ping(std::stop_token stop) {
  const std::string url = session_.origin() + "/v2/";
  // Make one attempt, without retries, so that the result describes the present.
  http::Request request{.url = url};
  CW_ASSIGN_OR_RETURN(const http::Response response, session_.SendOnce(request, "", stop));
  return RegistryStatus(response, fmt::format("GET {}", url));
}

}  // namespace cachewarm::bundle
