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

// Parses the header. INVALID_ARGUMENT if it is malformed or longer than 8 KiB. Pure.
absl::StatusOr<Challenge> ParseChallenge(std::string_view header);

// Returns the URL of a token request (distribution: docs/spec/auth/token):
// realm?service=...&scope=..., with one "scope" for each word of `scope`. INVALID_ARGUMENT unless
// the realm is an http or https URL. Pure.
absl::StatusOr<std::string> TokenUrl(const Challenge& challenge, std::string_view scope);

// Returns the "token" or "access_token" in the response of a token server. INVALID_ARGUMENT if it
// has none. Pure.
absl::StatusOr<std::string> ParseToken(std::string_view json);

}  // namespace cachewarm::bundle
