// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/referrer_list.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/listing.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/http/text/percent.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

constexpr int kOk = 200;
constexpr int kNotAcceptable = 406;
constexpr int kPagesMax = 64;
constexpr int kListTries = 4;

// True if the response shows that the registry has no referrers API. Registries differ in the
// status that they return.
bool LacksReferrersApi(const http::Response& response) {
  switch (response.status) {
    case kBadRequest:
    case kNotFound:
    case kNotAllowed:
    case kNotAcceptable:
      return true;
    default:
      return response.status == kOk &&
             !response.headers.Find("Content-Type").value_or("").starts_with(kIndexType);
  }
}

}  // namespace

absl::StatusOr<std::optional<std::string>> NextPage(std::string_view link, const std::string& url) {
  const size_t open = link.find('<');
  const size_t close = link.find('>');
  if (open == link.npos || close == link.npos || close < open ||
      link.substr(close).find("rel=\"next\"") == link.npos) {
    return std::nullopt;
  }
  CW_ASSIGN_OR_RETURN(const http::Url base, http::Url::Parse(url));
  CW_ASSIGN_OR_RETURN(const http::Url next,
                      http::ResolveLocation(base, link.substr(open + 1, close - open - 1)));
  if (next.Origin() != base.Origin()) {
    return absl::InvalidArgumentError(fmt::format(
        "the registry's list of referrers continues on another server: {}", next.Origin()));
  }
  return next.ToString();
}

std::string ReferrerList::ApiUrl(const Digest& subject) const {
  return fmt::format("{}/referrers/{}", target_.repository_url, subject.ToString());
}

std::string ReferrerList::TagUrl(const Digest& subject) const {
  return fmt::format("{}/manifests/{}", target_.repository_url, ListingTag(subject));
}

absl::StatusOr<std::optional<http::Response>> ReferrerList::GetIndex(const std::string& url,
                                                                     std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(http::Response response,
                      session_.Send({.url = url,
                                     .headers = {{"Accept", std::string(kIndexType)}},
                                     .body_bytes_max = size_t{kListingBytesMax}},
                                    target_.pull, stop));
  if (LacksReferrersApi(response)) {
    return std::nullopt;
  }
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("GET {}", url)));
  return response;
}

absl::StatusOr<std::vector<Descriptor>> ReferrerList::ReadPages(http::Response page,
                                                                const std::string& artifact_type,
                                                                std::stop_token stop) {
  std::vector<Descriptor> found;
  std::string url = target_.repository_url;
  for (int pages = 1;; ++pages) {
    CW_ASSIGN_OR_RETURN(const std::vector<Descriptor> items,
                        ParseListing(page.body, artifact_type));
    found.insert(found.end(), items.begin(), items.end());
    CW_ASSIGN_OR_RETURN(const std::optional<std::string> next,
                        NextPage(page.headers.Find("Link").value_or(""), url));
    if (!next.has_value()) {
      return found;
    }
    if (pages == kPagesMax || found.size() > kReferrersMax) {
      return absl::ResourceExhaustedError("the registry's list of referrers is too long");
    }
    url = *next;
    CW_ASSIGN_OR_RETURN(std::optional<http::Response> answer, GetIndex(url, stop));
    if (!answer.has_value()) {
      return absl::UnavailableError(fmt::format("GET {}: this page of referrers is missing", url));
    }
    page = *std::move(answer);
  }
}

absl::StatusOr<std::string> ReferrerList::ReadTag(const Digest& subject, std::stop_token stop) {
  const std::string url = TagUrl(subject);
  CW_ASSIGN_OR_RETURN(http::Response response,
                      session_.Send({.url = url,
                                     .headers = {{"Accept", std::string(kIndexType)}},
                                     .body_bytes_max = size_t{kListingBytesMax}},
                                    target_.pull, std::move(stop)));
  if (response.status == kNotFound) {
    return std::string();
  }
  CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("GET {}", url)));
  return std::move(response.body);
}

absl::StatusOr<std::vector<Descriptor>> ReferrerList::Read(const Digest& subject,
                                                           const std::string& artifact_type,
                                                           std::stop_token stop) {
  const std::string url = artifact_type.empty() ? ApiUrl(subject)
                                                : fmt::format("{}?artifactType={}", ApiUrl(subject),
                                                              http::PercentEncode(artifact_type));
  CW_ASSIGN_OR_RETURN(std::optional<http::Response> answer, GetIndex(url, stop));
  if (answer.has_value()) {
    return ReadPages(*std::move(answer), artifact_type, std::move(stop));
  }
  CW_ASSIGN_OR_RETURN(const std::string list, ReadTag(subject, std::move(stop)));
  if (list.empty()) {
    return std::vector<Descriptor>();
  }
  return ParseListing(list, artifact_type);
}

absl::StatusOr<std::optional<Digest>> ReferrerList::ListDigest(const Digest& subject,
                                                               std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::string list, ReadTag(subject, std::move(stop)));
  return list.empty() ? std::optional<Digest>() : DigestOf(list);
}

absl::Status ReferrerList::Add(const Descriptor& referrer, const Artifact& artifact,
                               std::stop_token stop) {
  const Digest& subject = artifact.subject.digest;
  CW_ASSIGN_OR_RETURN(const auto answer, GetIndex(ApiUrl(subject), stop));
  if (answer.has_value()) {
    return absl::OkStatus();
  }
  for (int attempt = 0; attempt < kListTries; ++attempt) {
    CW_ASSIGN_OR_RETURN(const std::string list, ReadTag(subject, stop));
    CW_ASSIGN_OR_RETURN(std::string changed, AddToListing(list, referrer, artifact));
    if (changed == list) {
      return absl::OkStatus();
    }
    const std::string url = TagUrl(subject);
    CW_ASSIGN_OR_RETURN(const http::Response response,
                        session_.Send({.method = http::Method::kPut,
                                       .url = url,
                                       .headers = {{"Content-Type", std::string(kIndexType)}},
                                       .body = std::move(changed)},
                                      target_.push, stop));
    CW_RETURN_IF_ERROR(RegistryStatus(response, fmt::format("PUT {}", url)));
  }
  return absl::UnavailableError(
      fmt::format("{}: other writers keep changing this list; try again", TagUrl(subject)));
}

}  // namespace cachewarm::bundle
