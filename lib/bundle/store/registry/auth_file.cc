// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/auth_file.h"

#include <cstdint>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/fs/file.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr int64_t kFileBytesMax = 1 << 20;
// The password of Google's user "_json_key_base64" is a whole key file, twice base64-encoded. This
// is more than the 4 KiB that Reader accepts by default.
constexpr size_t kSecretBytesMax = 64U << 10U;

// Returns the host in a key of "auths", which may have the form of a URL
// ("https://index.docker.io/v1/") or a path ("host:5000/path").
std::string_view HostOf(std::string_view name) {
  if (const size_t scheme = name.find("://"); scheme != std::string_view::npos) {
    name.remove_prefix(scheme + 3);
  }
  return name.substr(0, name.find('/'));
}

const Json* MemberOf(const Json& object, std::string_view host) {
  if (!object.is_object()) {
    return nullptr;
  }
  for (const auto& [name, value] : object.items()) {
    if (HostOf(name) == host) {
      return &value;
    }
  }
  return nullptr;
}

absl::StatusOr<BasicCredentials> ReadAuth(const Json& auth, std::string_view host) {
  Reader reader(auth, fmt::format("auths[\"{}\"]", host));
  std::string base64;
  std::string username;
  std::string password;
  std::string identity_token;
  reader.Read("auth", base64, kSecretBytesMax)
      .Read("username", username)
      .Read("password", password, kSecretBytesMax)
      .Read("identitytoken", identity_token, kSecretBytesMax);
  if (reader.status().ok() && !identity_token.empty()) {
    // If there is an identity token, "auth" contains no password, and registries would reject that
    // "auth".
    reader.Fail("identitytoken",
                "is not supported; write a user and password instead: \"auth\", or "
                "\"username\" and \"password\"");
  }
  if (reader.status().ok() && base64.empty() && username.empty()) {
    reader.Fail("auth", "is required unless username and password are set");
  }
  if (reader.status().ok() && base64.empty()) {
    base64 = codec::EncodeBase64(fmt::format("{}:{}", username, password));
  }
  const absl::StatusOr<std::string> plain = codec::DecodeBase64(base64);
  if (reader.status().ok() && !plain.ok()) {
    reader.Fail("auth", Message(plain.status()));
  }
  CW_RETURN_IF_ERROR(reader.status());
  // Encode the decoded text again, so that no blank or line break of the file ends up in a header.
  return BasicCredentials{.base64 = codec::EncodeBase64(*plain)};
}

}  // namespace

absl::StatusOr<std::optional<BasicCredentials>> FindCredentials(std::string_view config_json,
                                                                std::string_view host) {
  CW_ASSIGN_OR_RETURN(const Json json,
                      codec::ParseJson(config_json, {.bytes_max = size_t{kFileBytesMax}}));
  const Reader reader(json, "");
  CW_RETURN_IF_ERROR(reader.status());
  const Json* auths = reader.Member("auths");
  const Json* auth = auths == nullptr ? nullptr : MemberOf(*auths, host);
  // Ignore an empty object: "docker login" with a credential helper writes one for the host.
  if (auth != nullptr && !(auth->is_object() && auth->empty())) {
    CW_ASSIGN_OR_RETURN(BasicCredentials found, ReadAuth(*auth, host));
    return found;
  }
  const Json* helpers = reader.Member("credHelpers");
  if (reader.Has("credsStore") || (helpers != nullptr && MemberOf(*helpers, host) != nullptr)) {
    return absl::InvalidArgumentError(
        fmt::format("the credentials for {} are kept by a credential helper, which cachewarm does "
                    "not run; write them to \"auths\" of a separate file and use that file",
                    host));
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<BasicCredentials>> ReadCredentials(const std::string& path,
                                                                std::string_view host) {
  if (path.empty()) {
    return std::nullopt;
  }
  const auto text = fs::ReadNamedFile(path, kFileBytesMax);
  CW_RETURN_IF_ERROR(text.status());
  auto found = FindCredentials(*text, host);
  if (!found.ok()) {
    return Annotate(found.status(), path);
  }
  return found;
}

}  // namespace cachewarm::bundle
