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

// One repository of a registry, and what a token must allow.
struct ReferrerTarget {
  std::string repository_url;  // "http://host/v2/base/team/llama"
  std::string pull;
  std::string push;
};

// What refers to what in one repository: by the registry's referrers API where it has one, else by
// the list under the tag sha256-<hex> (OCI distribution-spec 1.1 "Listing Referrers", "Referrers
// Tag Schema"). One thread; `session` must outlive it.
class ReferrerList {
 public:
  ReferrerList(Session& session, ReferrerTarget target)
      : session_(session), target_(std::move(target)) {}

  // As Store::Referrers. RESOURCE_EXHAUSTED for a list without end.
  absl::StatusOr<std::vector<Descriptor>> Read(const Digest& subject,
                                               const std::string& artifact_type,
                                               std::stop_token stop);
  // After `referrer` was put: a registry without the API gets its list changed. UNAVAILABLE when
  // other writers changed it again and again.
  absl::Status Add(const Descriptor& referrer, const Artifact& artifact, std::stop_token stop);

 private:
  // nullopt: the registry has no referrers API.
  absl::StatusOr<std::optional<http::Response>> GetIndex(const std::string& url,
                                                         std::stop_token stop);
  absl::StatusOr<std::vector<Descriptor>> ReadPages(http::Response page,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop);
  // Empty: there is none.
  absl::StatusOr<std::string> ReadTag(const Digest& subject, std::stop_token stop);
  std::string ApiUrl(const Digest& subject) const;
  std::string TagUrl(const Digest& subject) const;

  Session& session_;
  const ReferrerTarget target_;
};

// The address of rel="next" in a Link header (RFC 8288) against `url`, on the same origin; nullopt:
// there is none. INVALID_ARGUMENT when it leads to another server. Pure.
absl::StatusOr<std::optional<std::string>> NextPage(std::string_view link, const std::string& url);

}  // namespace cachewarm::bundle
