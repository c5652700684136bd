// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::http {

// An absolute http or https URL without user information and fragment (RFC 3986).
struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address without brackets
  uint16_t port = 0;   // never 0 after parsing
  std::string target;  // path and query, at least "/"

  static absl::StatusOr<Url> Parse(std::string_view text);

  // Returns "https://host:port", with brackets around an IPv6 address.
  std::string Origin() const;
  std::string ToString() const { return Origin() + target; }
};

// Resolves a Location header against the URL whose response contained it (RFC 3986 §5.2, but "."
// and ".." stay in the path).
absl::StatusOr<Url> ResolveLocation(const Url& base, std::string_view location);

// Returns true for "localhost", 127.0.0.0/8 and ::1: plain HTTP to these hosts does not leave the
// machine.
bool IsLoopback(std::string_view host);

}  // namespace cachewarm::http
