// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "lib/settings/settings.h"

// Variables of settings, by the type of their values. Each setter rejects an invalid value with
// INVALID_ARGUMENT, which quotes the value. The C++ variable must outlive the result.
namespace cachewarm::settings {

absl::StatusOr<int64_t> WholeNumber(std::string_view value, int64_t min, int64_t max);

Variable Text(std::string& to);
Variable Boolean(bool& to);  // true or false
Variable Switch(bool& to);   // the same; the flag without a value means true
// Accepts an absolute path without "..", at most 1024 bytes; drops a trailing slash.
Variable AbsolutePath(std::string& to);
// Accepts ADDRESS:PORT, [V6ADDRESS]:PORT, or :PORT for every IPv4 address.
Variable Listen(std::string& address, uint16_t& port);
// Accept the name of a Kubernetes object, which `what` describes in errors ("a namespace"). Label()
// checks the length and the characters of a DNS-1123 label (63 bytes, no dots), Subdomain() those
// of a subdomain (253 bytes).
Variable Label(std::string& to, std::string_view what);
Variable Subdomain(std::string& to, std::string_view what);

template <std::integral T>
Variable Number(T& to, int64_t min, int64_t max) {
  return {[&to, min, max](const GivenValue& given) -> absl::Status {
            CW_ASSIGN_OR_RETURN(const int64_t number, WholeNumber(given.value, min, max));
            to = static_cast<T>(number);
            return absl::OkStatus();
          },
          std::to_string(to)};
}

// Accepts the texts that `parse` accepts. The setting must name its default in words.
template <typename T>
Variable Parsed(T& to, absl::StatusOr<T> (*parse)(std::string_view text)) {
  return {[&to, parse](const GivenValue& given) -> absl::Status {
            CW_ASSIGN_OR_RETURN(to, parse(given.value));
            return absl::OkStatus();
          },
          ""};
}

}  // namespace cachewarm::settings
