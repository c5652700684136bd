// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/challenge.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/http/text/percent.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

constexpr size_t kHeaderBytesMax = 8U << 10U;
constexpr size_t kTokenBytesMax = 16U << 10U;

absl::Status Malformed() {
  return absl::InvalidArgumentError("the registry's WWW-Authenticate header is malformed");
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

void SkipBlanks(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t,"), rest.size()));
}

// Removes a token or a quoted string from the start of `rest` and returns its value, without quotes
// and escapes.
absl::StatusOr<std::string> ParseValue(std::string_view& rest) {
  std::string value;
  if (rest.empty() || rest.front() != '"') {
    const size_t end = std::min(rest.find_first_of(", \t"), rest.size());
    value = std::string(rest.substr(0, end));
    rest.remove_prefix(end);
    return value;
  }
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    if (rest[i] == '\\' && i + 1 < rest.size()) {
      ++i;
    }
    value.push_back(rest[i]);
  }
  return Malformed();
}

}  // namespace

absl::StatusOr<Challenge> ParseChallenge(std::string_view header) {
  if (header.size() > kHeaderBytesMax) {
    return Malformed();
  }
  SkipBlanks(header);
  const size_t blank = std::min(header.find(' '), header.size());
  Challenge challenge{.scheme = Lower(header.substr(0, blank))};
  header.remove_prefix(blank);
  for (SkipBlanks(header); !header.empty(); SkipBlanks(header)) {
    const size_t equals = header.find('=');
    if (equals == std::string_view::npos) {
      return Malformed();
    }
    const std::string name = Lower(header.substr(0, equals));
    header.remove_prefix(equals + 1);
    CW_ASSIGN_OR_RETURN(challenge.parameters[name], ParseValue(header));
  }
  if (challenge.scheme.empty()) {
    return Malformed();
  }
  return challenge;
}

absl::StatusOr<std::string> TokenUrl(const Challenge& challenge, std::string_view scope) {
  const auto realm = challenge.parameters.find("realm");
  if (realm == challenge.parameters.end()) {
    return Malformed();
  }
  CW_ASSIGN_OR_RETURN(const http::Url url, http::Url::Parse(realm->second));
  std::string text = url.ToString();
  char separator = text.find('?') == std::string::npos ? '?' : '&';
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}={}", separator, name, http::PercentEncode(value));
    separator = '&';
  };
  if (const auto service = challenge.parameters.find("service");
      service != challenge.parameters.end()) {
    add("service", service->second);
  }
  while (!scope.empty()) {
    const size_t space = std::min(scope.find(' '), scope.size());
    add("scope", scope.substr(0, space));
    scope.remove_prefix(std::min(space + 1, scope.size()));
  }
  return text;
}

absl::StatusOr<std::string> ParseToken(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const codec::Json json,
                      codec::ParseJson(text, {.bytes_max = 4 * kTokenBytesMax}));
  codec::Reader reader(json, "");
  std::string token;
  reader.Read("access_token", token, kTokenBytesMax).Read("token", token, kTokenBytesMax);
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "token"));
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (token.empty() || !printable) {
    return absl::InvalidArgumentError(
        "the response of the registry's token server contains no token");
  }
  return token;
}

}  // namespace cachewarm::bundle
