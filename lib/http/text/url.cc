// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/url.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "lib/http/text/ascii.h"

namespace cachewarm::http {
namespace {

constexpr size_t kUrlBytesMax = 16U << 10U;

absl::Status Refuse(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is not a usable URL: {}", text.substr(0, 200), problem));
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool IsIpv6Character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

struct Authority {
  std::string_view host;
  std::string_view port;
  bool is_bracketed = false;
};

Authority Split(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const size_t end = authority.find(']');
    const std::string_view rest =
        end == std::string_view::npos ? std::string_view() : authority.substr(end + 1);
    const bool has_port = !rest.empty() && rest.front() == ':';
    return {
        .host = end == std::string_view::npos ? std::string_view() : authority.substr(1, end - 1),
        .port = has_port ? rest.substr(1) : rest,
        .is_bracketed = true};
  }
  const size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos) {
    return {.host = authority, .port = {}};
  }
  return {.host = authority.substr(0, colon), .port = authority.substr(colon + 1)};
}

bool IsHost(std::string_view host, bool is_bracketed) {
  return !host.empty() && host.size() <= 253 &&
         std::all_of(host.begin(), host.end(), is_bracketed ? IsIpv6Character : IsHostCharacter);
}

}  // namespace

absl::StatusOr<Url> Url::Parse(std::string_view text) {
  if (text.size() > kUrlBytesMax || !IsPrintable(text)) {
    return Refuse(text, "it is too long or holds characters that must be percent-encoded");
  }
  const size_t colon = text.find("://");
  Url url;
  url.scheme = Lower(text.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (url.scheme != "http" && url.scheme != "https") {
    return Refuse(text, "it does not begin with http:// or https://");
  }
  const std::string_view rest = text.substr(colon + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  if (rest.find('#', end) != std::string_view::npos || rest.substr(0, end).find('@') != rest.npos) {
    return Refuse(text, "it has user information or a fragment, which are not supported");
  }
  const Authority authority = Split(rest.substr(0, end));
  url.host = Lower(authority.host);
  if (!IsHost(url.host, authority.is_bracketed)) {
    return Refuse(text, "its host name is malformed");
  }
  url.port = url.scheme == "https" ? 443 : 80;
  if (!authority.port.empty()) {
    const char* last = authority.port.data() + authority.port.size();
    const auto [at, error] = std::from_chars(authority.port.data(), last, url.port);
    if (error != std::errc() || at != last || url.port == 0) {
      return Refuse(text, "its port is not between 1 and 65535");
    }
  }
  url.target = rest.substr(end);
  if (url.target.empty() || url.target.front() != '/') {
    url.target.insert(0, "/");
  }
  return url;
}

std::string Url::Origin() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

absl::StatusOr<Url> ResolveLocation(const Url& base, std::string_view location) {
  if (location.find("://") != std::string_view::npos && location.find("://") < 8) {
    return Url::Parse(location);
  }
  if (location.starts_with("//")) {
    return Url::Parse(fmt::format("{}:{}", base.scheme, location));
  }
  if (location.starts_with("/")) {
    return Url::Parse(base.Origin() + std::string(location));
  }
  const std::string path = base.target.substr(0, base.target.find('?'));
  if (location.starts_with("?")) {
    return Url::Parse(base.Origin() + path + std::string(location));
  }
  return Url::Parse(base.Origin() + path.substr(0, path.rfind('/') + 1) + std::string(location));
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") {
    return true;
  }
  const bool is_ipv4 = std::count(host.begin(), host.end(), '.') == 3 &&
                       host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_ipv4 && host.starts_with("127.");
}

}  // namespace cachewarm::http
