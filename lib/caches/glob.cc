// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/glob.h"

#include <cstddef>
#include <vector>

namespace cachewarm::caches {
namespace {

std::vector<std::string_view> Components(std::string_view path) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t slash = path.find('/');
    out.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return out;
    }
    path.remove_prefix(slash + 1);
  }
}

// "*" and "?" within one component; the last star alone needs to be remembered.
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

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view path) {
  const std::vector<std::string_view> want = Components(pattern);
  const std::vector<std::string_view> have = Components(path);
  size_t w = 0;
  size_t h = 0;
  size_t star = want.size();
  size_t resume = 0;
  while (h < have.size()) {
    if (w < want.size() && want[w] == "**") {
      star = w++;
      resume = h;
    } else if (w < want.size() && ComponentMatches(want[w], have[h])) {
      ++w;
      ++h;
    } else if (star < want.size()) {
      w = star + 1;
      h = ++resume;
    } else {
      return false;
    }
  }
  while (w < want.size() && want[w] == "**") {
    ++w;
  }
  return w == want.size();
}

}  // namespace cachewarm::caches
