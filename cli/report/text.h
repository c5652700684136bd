// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Texts of the page. Every text from the cluster is untrusted and reaches the page only through
// Shown().
namespace cachewarm::cli::report {

// Returns `text` for use as character data or as an attribute value in double quotes of HTML and
// XML: on one line, at most `columns_max` columns wide (characters outside ASCII count as two),
// with an ellipsis in place of the middle of a longer text. Replaces control characters, characters
// that change the direction of text or are invisible, and invalid UTF-8 by U+FFFD.
std::string Shown(std::string_view text, size_t columns_max);

// Formats a number with separators: "12,345".
std::string FormatCount(int64_t count);
// Formats seconds: "0s", "5.5s", "41s", then as FormatDuration(): "4m05s", "3h41m".
std::string FormatSeconds(double seconds);
// Formats a share: "97.2%", "0%" and "100%" only if that is exact. Returns "-" if `whole` is 0.
std::string FormatShare(int64_t part, int64_t whole);
// Formats `count` with the singular or plural of a noun: "1 start", "12 starts".
std::string FormatNumberOf(int64_t count, std::string_view noun);

}  // namespace cachewarm::cli::report
