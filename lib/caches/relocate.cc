// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/relocate.h"

#include <algorithm>

#include "fmt/format.h"

namespace cachewarm::caches {
namespace {

bool CanStandBetweenQuotes(std::string_view directory) {
  return directory.starts_with('/') && std::none_of(directory.begin(), directory.end(), [](char c) {
           return c == '"' || c == '\'' || c == '\\' || static_cast<unsigned char>(c) < ' ';
         });
}

// Returns the directory of `path` below the directory of its cache: "KEY" of "triton/KEY/a.json".
std::string_view DirectoryInCache(const Placement& placement, std::string_view path) {
  const std::string_view below = path.substr(std::min(placement.below, path.size()));
  return below.substr(0, std::min(below.rfind('/'), below.size()));
}

// A text between quotes, which begins after the opening one.
struct Quoted {
  size_t end = 0;     // of the closing quote, or of the line if there is none
  bool plain = true;  // closed, and without escapes, which a path of a compiler never has
};

Quoted FindQuoted(std::string_view text, size_t begin, char quote) {
  Quoted quoted{.end = begin};
  while (quoted.end < text.size() && text[quoted.end] != quote && text[quoted.end] != '\n') {
    quoted.plain = quoted.plain && text[quoted.end] != '\\';
    quoted.end += text[quoted.end] == '\\' ? size_t{2} : size_t{1};
  }
  quoted.plain = quoted.plain && quoted.end < text.size() && text[quoted.end] == quote;
  return quoted;
}

}  // namespace

std::optional<std::string> Relocate(std::string_view text, const Placement& placement,
                                    std::string_view path, std::string_view directory) {
  const std::string_view inside = DirectoryInCache(placement, path);
  if (!placement.own_paths || inside.empty() || !CanStandBetweenQuotes(directory)) {
    return std::nullopt;
  }
  const std::string suffix = fmt::format("/{}", inside);
  std::string out;
  size_t copied = 0;
  bool is_changed = false;
  size_t at = text.find_first_of("\"'");
  while (at != std::string_view::npos) {
    const auto [end, plain] = FindQuoted(text, at + 1, text[at]);
    const std::string_view quoted = text.substr(at + 1, end - at - 1);
    const size_t slash = quoted.rfind('/');
    if (plain && quoted.starts_with('/') && slash + 1 < quoted.size() &&
        quoted.substr(0, slash).ends_with(suffix) && quoted.substr(0, slash) != directory) {
      out.append(text.substr(copied, at + 1 - copied)).append(directory);
      copied = at + 1 + slash;
      is_changed = true;
    }
    at = text.find_first_of("\"'", end + 1);
  }
  return is_changed ? std::optional(out.append(text.substr(copied))) : std::nullopt;
}

}  // namespace cachewarm::caches
