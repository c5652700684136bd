// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "lib/settings/settings.h"

// Setters of the kinds of values that settings have. Each refuses what is not of its kind with
// INVALID_ARGUMENT that quotes the value; what it sets must outlive it.
namespace cachewarm::settings {

absl::StatusOr<int64_t> WholeNumber(std::string_view value, int64_t min, int64_t max);

Setter Text(std::string& to);
Setter Boolean(bool& to);  // true or false
// Below / and without "..", at most 1024 bytes; a slash at the end is dropped.
Setter AbsolutePath(std::string& to);
// ADDRESS:PORT, [V6ADDRESS]:PORT or :PORT, which is every address.
Setter Listen(std::string& address, uint16_t& port);
// Length and characters of the name of `what` ("a namespace") in Kubernetes: those of a DNS-1123
// label (63), or of a subdomain (253, with dots).
Setter Label(std::string& to, std::string_view what);
Setter Subdomain(std::string& to, std::string_view what);

template <std::integral T>
Setter Number(T& to, int64_t min, int64_t max) {
  return [&to, min, max](const Given& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(const int64_t number, WholeNumber(given.value, min, max));
    to = static_cast<T>(number);
    return absl::OkStatus();
  };
}

// What `parse` makes of the text.
template <typename T>
Setter Parsed(T& to, absl::StatusOr<T> (*parse)(std::string_view text)) {
  return [&to, parse](const Given& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(to, parse(given.value));
    return absl::OkStatus();
  };
}

}  // namespace cachewarm::settings
