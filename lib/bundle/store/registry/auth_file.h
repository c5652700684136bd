// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// A user name and password in the form of RFC 7617: base64 of "name:password".
struct BasicCredentials {
  std::string base64;
};

// Returns the credentials of `host` in a docker config.json ("auths": {"host[:port]": {"auth":
// base64} or {"username", "password"}}); nullopt if the file has none for the host.
// INVALID_ARGUMENT if the file is malformed or the credentials are of an unsupported kind: in a
// helper program ("credHelpers", "credsStore"), or an "identitytoken" (an OAuth2 refresh token).
// Pure.
absl::StatusOr<std::optional<BasicCredentials>> FindCredentials(std::string_view config_json,
                                                                std::string_view host);

// As FindCredentials(), from a file. Reads it on every call, so that a rotated Secret takes effect.
// nullopt for an empty path.
absl::StatusOr<std::optional<BasicCredentials>> ReadCredentials(const std::string& path,
                                                                std::string_view host);

}  // namespace cachewarm::bundle
