// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// A WWW-Authenticate header (RFC 9110 §11.6.1) with one challenge.
struct Challenge {
  std::string scheme;                             // lower case: "basic", "bearer"
  std::map<std::string, std::string> parameters;  // names in lower case: realm, service, scope
};

// INVALID_ARGUMENT when it is malformed or longer than 8 KiB. Pure.
absl::StatusOr<Challenge> ParseChallenge(std::string_view header);

// The URL to ask for a token (distribution: docs/spec/auth/token): realm?service=...&scope=... ,
// one of the latter for each word of `scope`. The realm must be an http or https URL. Pure.
absl::StatusOr<std::string> TokenUrl(const Challenge& challenge, std::string_view scope);

// The token of the answer: "token" or "access_token". Pure.
absl::StatusOr<std::string> ParseToken(std::string_view json);

}  // namespace cachewarm::bundle
