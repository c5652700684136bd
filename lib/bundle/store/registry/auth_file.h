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

// What a docker config.json ("auths": {"host[:port]": {"auth": base64} or {"username",
// "password"}}) holds for `host`; nullopt: nothing. INVALID_ARGUMENT for a malformed file, where
// only a credential helper ("credHelpers", "credsStore") would know, as we run no programs, and for
// an "identitytoken" (an OAuth2 refresh token). Pure.
absl::StatusOr<std::optional<BasicCredentials>> FindCredentials(std::string_view config_json,
                                                                std::string_view host);

// The same from a file, read anew at every call, so that a rotated Secret counts. An empty path is
// nullopt.
absl::StatusOr<std::optional<BasicCredentials>> ReadCredentials(const std::string& path,
                                                                std::string_view host);

}  // namespace cachewarm::bundle
