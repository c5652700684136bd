// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "lib/settings/settings.h"

// Setters for the value types of settings. Each rejects an invalid value with INVALID_ARGUMENT,
// which quotes the value. The variable that a setter writes must outlive the setter.
namespace cachewarm::settings {

absl::StatusOr<int64_t> WholeNumber(std::string_view value, int64_t min, int64_t max);

Setter Text(std::string& to);
Setter Boolean(bool& to);  // true or false
// Accepts an absolute path without "..", at most 1024 bytes; drops a trailing slash.
Setter AbsolutePath(std::string& to);
// Accepts ADDRESS:PORT, [V6ADDRESS]:PORT, or :PORT for every IPv4 address.
Setter Listen(std::string& address, uint16_t& port);
// Accept the name of a Kubernetes object, which `what` describes in errors ("a namespace"). Label()
// checks the length and the characters of a DNS-1123 label (63 bytes, no dots), Subdomain() those
// of a subdomain (253 bytes).
Setter Label(std::string& to, std::string_view what);
Setter Subdomain(std::string& to, std::string_view what);

template <std::integral T>
Setter Number(T& to, int64_t min, int64_t max) {
  return [&to, min, max](const GivenValue& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(const int64_t number, WholeNumber(given.value, min, max));
    to = static_cast<T>(number);
    return absl::OkStatus();
  };
}

// Accepts the texts that `parse` accepts.
template <typename T>
Setter Parsed(T& to, absl::StatusOr<T> (*parse)(std::string_view text)) {
  return [&to, parse](const GivenValue& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(to, parse(given.value));
    return absl::OkStatus();
  };
}

}  // namespace cachewarm::settings
