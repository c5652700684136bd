// SPDX-License-Identifier: Apache-2.0
#include "cli/limits.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::cli {
namespace {

constexpr bundle::Limits kDefaults;

// Sets `limit` to the value of `option`; unchanged if the option was not given.
absl::Status ReadLimit(const Arguments& arguments, std::string_view option, int64_t most,
                       int64_t& limit) {
  const std::string text = arguments.Value(option);
  if (text.empty()) {
    return absl::OkStatus();
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most) {
    return absl::InvalidArgumentError(
        fmt::format("--{} \"{}\": expected a whole number, 1 to {}", option, text, most));
  }
  limit = number;
  return absl::OkStatus();
}

}  // namespace

std::span<const Option> LimitOptionList() {
  static constexpr std::array<Option, 4> kOptions = {{
      {.name = "limit-files",
       .value = "COUNT",
       .help = "reject bundles with more files (default and maximum: 200000)"},
      {.name = "limit-file-bytes",
       .value = "BYTES",
       .help = "reject bundles with a larger file (default: 8589934592)"},
      {.name = "limit-bytes",
       .value = "BYTES",
       .help = "reject bundles with more bytes in all files, uncompressed (default: 68719476736)"},
      {.name = "limit-ratio",
       .value = "TIMES",
       .help =
           "reject bundles with a larger ratio of uncompressed to compressed bytes, unless they "
           "have at most 64 MiB uncompressed (default: 400)"},
  }};
  return kOptions;
}

absl::StatusOr<bundle::Limits> LimitsOf(const Arguments& arguments) {
  bundle::Limits limits;
  CW_RETURN_IF_ERROR(
      ReadLimit(arguments, "limit-files", kDefaults.entries_max, limits.entries_max));
  CW_RETURN_IF_ERROR(ReadLimit(arguments, "limit-file-bytes", INT64_MAX, limits.file_bytes_max));
  CW_RETURN_IF_ERROR(ReadLimit(arguments, "limit-bytes", INT64_MAX, limits.total_bytes_max));
  CW_RETURN_IF_ERROR(ReadLimit(arguments, "limit-ratio", INT64_MAX, limits.ratio_max));
  return limits;
}

}  // namespace cachewarm::cli
