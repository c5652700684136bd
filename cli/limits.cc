// SPDX-License-Identifier: Apache-2.0
#include "cli/limits.h"

#include <array>
#include <cstdint>

namespace cachewarm::cli {

std::span<const Option> LimitOptionList() {
  static constexpr std::array<Option, 4> kOptions = {{
      {.name = "limit-files",
       .value = "COUNT",
       .help = "reject bundles with more files (default and maximum: 200000)",
       .range = Range{1, bundle::Limits().entries_max}},
      {.name = "limit-file-bytes",
       .value = "BYTES",
       .help = "reject bundles with a larger file (default: 8589934592)",
       .range = Range{.min = 1}},
      {.name = "limit-bytes",
       .value = "BYTES",
       .help = "reject bundles with more bytes in all files, uncompressed (default: 68719476736)",
       .range = Range{.min = 1}},
      {.name = "limit-ratio",
       .value = "TIMES",
       .help =
           "reject bundles with a larger ratio of uncompressed to compressed bytes, unless they "
           "have at most 64 MiB uncompressed (default: 400)",
       .range = Range{.min = 1}},
  }};
  return kOptions;
}

bundle::Limits LimitsOf(const Arguments& arguments) {
  const bundle::Limits limits;
  return {.entries_max = arguments.Number("limit-files", limits.entries_max),
          .file_bytes_max = arguments.Number("limit-file-bytes", limits.file_bytes_max),
          .total_bytes_max = arguments.Number("limit-bytes", limits.total_bytes_max),
          .ratio_max = arguments.Number("limit-ratio", limits.ratio_max)};
}

}  // namespace cachewarm::cli
