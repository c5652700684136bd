// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/glob.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace cachewarm::caches {
namespace {

// Iterates over the components of a path.
class Cursor {
 public:
  explicit Cursor(std::string_view path) : rest_(path) {}

  bool ended() const { return ended_; }
  std::string_view component() const { return rest_.substr(0, rest_.find('/')); }

  void Step() {
    const size_t slash = rest_.find('/');
    ended_ = slash == std::string_view::npos;
    rest_.remove_prefix(ended_ ? rest_.size() : slash + 1);
  }

 private:
  std::string_view rest_;
  bool ended_ = false;
};

bool IsDoubleStar(const Cursor& pattern) {
  return !pattern.ended() && pattern.component() == "**";
}

// Matches "*" and "?" within one component. After a mismatch it is sufficient to extend the last
// "*".
bool ComponentMatches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

bool IsWildcard(char c) {
  return c == '*' || c == '?';
}

// Returns true if `path` differs from `pattern` before its first or after its last wildcard. Most
// rows of a table do not match a path, and this shows it sooner than a comparison of components.
bool DiffersOutsideWildcards(std::string_view pattern, std::string_view path) {
  const size_t shorter = std::min(pattern.size(), path.size());
  for (size_t i = 0; i < shorter && !IsWildcard(pattern[i]); ++i) {
    if (pattern[i] != path[i]) {
      return true;
    }
  }
  for (size_t i = 1; i <= shorter && !IsWildcard(pattern[pattern.size() - i]); ++i) {
    if (pattern[pattern.size() - i] != path[path.size() - i]) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view path) {
  if (DiffersOutsideWildcards(pattern, path)) {
    return false;
  }
  Cursor want(pattern);
  Cursor have(path);
  // For backtracking: `star` is the pattern after the last "**"; `resume` is the rest of the path
  // after the components that this "**" matches so far.
  std::optional<Cursor> star;
  Cursor resume = have;
  while (!have.ended()) {
    if (IsDoubleStar(want)) {
      want.Step();
      star = want;
      resume = have;
    } else if (!want.ended() && ComponentMatches(want.component(), have.component())) {
      want.Step();
      have.Step();
    } else if (star) {
      want = *star;
      resume.Step();
      have = resume;
    } else {
      return false;
    }
  }
  while (IsDoubleStar(want)) {
    want.Step();
  }
  return want.ended();
}

}  // namespace cachewarm::caches
