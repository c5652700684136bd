// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/values.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"

namespace cachewarm::settings {
namespace {

constexpr size_t kPathBytesMax = 1024;
constexpr size_t kLabelBytesMax = 63;
constexpr size_t kSubdomainBytesMax = 253;

struct NameRule {
  std::string_view what;
  size_t bytes_max;
  std::string_view also;  // characters allowed besides lower-case letters and digits
  std::string_view expected;
};

// Returns the text of a variable for --help.
std::string Initial(const std::string& text) {
  return text.empty() ? "none" : text;
}

Variable Name(std::string& to, const NameRule& rule) {
  const Setter set = [&to, rule](const GivenValue& given) -> absl::Status {
    const std::string& name = given.value;
    const bool fits = !name.empty() && name.size() <= rule.bytes_max &&
                      std::all_of(name.begin(), name.end(), [&](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                               rule.also.find(c) != std::string_view::npos;
                      });
    if (!fits) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" is not a valid name of {}: expected {}",
                                                    name, rule.what, rule.expected));
    }
    to = name;
    return absl::OkStatus();
  };
  return {set, Initial(to)};
}

}  // namespace

absl::StatusOr<int64_t> WholeNumber(std::string_view value, int64_t min, int64_t max) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a whole number from {} to {}", value, min, max));
  }
  return number;
}

Variable Text(std::string& to) {
  const Setter set = [&to](const GivenValue& given) {
    to = given.value;
    return absl::OkStatus();
  };
  return {set, Initial(to)};
}

Variable Boolean(bool& to) {
  const Setter set = [&to](const GivenValue& given) {
    if (given.value != "true" && given.value != "false") {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is neither true nor false", given.value));
    }
    to = given.value == "true";
    return absl::OkStatus();
  };
  return {set, to ? "true" : "false"};
}

Variable Switch(bool& to) {
  Variable variable = Boolean(to);
  variable.form = Form::kSwitch;
  return variable;
}

Variable AbsolutePath(std::string& to) {
  const Setter set = [&to](const GivenValue& given) {
    const std::string& path = given.value;
    if (path.size() < 2 || path.front() != '/' || path.size() > kPathBytesMax ||
        (path + "/").find("/../") != std::string::npos) {
      return absl::InvalidArgumentError(fmt::format(
          "\"{}\": expected an absolute path other than /, without \"..\", of at most 1024 bytes",
          path));
    }
    to = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
    return absl::OkStatus();
  };
  return {set, Initial(to)};
}

Variable Listen(std::string& address, uint16_t& port) {
  const Setter set = [&address, &port](const GivenValue& given) -> absl::Status {
    const std::string& value = given.value;
    const size_t colon = value.rfind(':');
    if (colon == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is not ADDRESS:PORT, for example 0.0.0.0:8080 or [::]:8080", value));
    }
    CW_ASSIGN_OR_RETURN(const int64_t number, WholeNumber(value.substr(colon + 1), 0, 65535));
    std::string host = value.substr(0, colon);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    address = host.empty() ? "0.0.0.0" : host;
    port = static_cast<uint16_t>(number);
    return absl::OkStatus();
  };
  return {set, fmt::format("{}:{}", address, port)};
}

Variable Label(std::string& to, std::string_view what) {
  return Name(to, {.what = what,
                   .bytes_max = kLabelBytesMax,
                   .also = "-",
                   .expected = "a-z, 0-9 and -, as in gpu-pool-1"});
}

Variable Subdomain(std::string& to, std::string_view what) {
  return Name(to, {.what = what,
                   .bytes_max = kSubdomainBytesMax,
                   .also = "-.",
                   .expected = "a-z, 0-9, - and ., as in node-1.example"});
}

}  // namespace cachewarm::settings
