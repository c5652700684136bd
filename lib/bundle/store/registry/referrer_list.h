// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/registry/session.h"

namespace cachewarm::bundle {

// One repository of a registry, with the token scopes for reading and for writing it.
struct ReferrerTarget {
  std::string repository_url;  // "http://host/v2/base/team/llama"
  std::string pull;
  std::string push;
};

// Reads and extends the list of referrers of a manifest: with the registry's referrers API, or, if
// the registry has none, with the list under the tag sha256-<hex> (OCI distribution-spec 1.1
// "Listing Referrers", "Referrers Tag Schema"). Not thread-safe; `session` must outlive this
// object.
class ReferrerList {
 public:
  ReferrerList(Session& session, ReferrerTarget target)
      : session_(session), target_(std::move(target)) {}

  // As Store::Referrers(). RESOURCE_EXHAUSTED for a list of more than kReferrersMax items or 64
  // pages.
  absl::StatusOr<std::vector<Descriptor>> Read(const Digest& subject,
                                               const std::string& artifact_type,
                                               std::stop_token stop);
  // Returns the digest of the list under the tag; nullopt if there is none.
  absl::StatusOr<std::optional<Digest>> ListDigest(const Digest& subject, std::stop_token stop);
  // Ensures that `referrer`, whose manifest is stored already, is in the list of referrers. A
  // registry with the referrers API adds it by itself; for any other registry, changes the list
  // under the tag. UNAVAILABLE if concurrent writers keep changing that list.
  absl::Status Add(const Descriptor& referrer, const Artifact& artifact, std::stop_token stop);

 private:
  // Requests one page of the referrers API. Returns nullopt if the registry has no such API.
  absl::StatusOr<std::optional<http::Response>> GetIndex(const std::string& url,
                                                         std::stop_token stop);
  absl::StatusOr<std::vector<Descriptor>> ReadPages(http::Response page,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop);
  // Returns the text of the list under the tag; empty if there is none.
  absl::StatusOr<std::string> ReadTag(const Digest& subject, std::stop_token stop);
  std::string ApiUrl(const Digest& subject) const;
  std::string TagUrl(const Digest& subject) const;

  Session& session_;
  const ReferrerTarget target_;
};

// Returns the URL of the next page, rel="next" in a Link header (RFC 8288), resolved against `url`;
// nullopt if there is none. INVALID_ARGUMENT if it is on another server. Pure.
absl::StatusOr<std::optional<std::string>> NextPage(std::string_view link, const std::string& url);

}  // namespace cachewarm::bundle
