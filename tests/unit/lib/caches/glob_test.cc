// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace cachewarm::caches {
namespace {

struct Case {
  const char* pattern;
  const char* path;
  bool matches;
};

TEST(GlobMatches, MatchesStarsAndQuestionMarks) {
  const Case cases[] = {
      {"a", "a", true},
      {"a", "b", false},
      {"a", "a/b", false},
      {"a/b", "a", false},
      {"*", "abc", true},
      {"*", "a/b", false},
      {"*", "", true},
      {"?", "a", true},
      {"?", "", false},
      {"?", "ab", false},
      {"?", "/", false},
      {"*.so", "x.so", true},
      {"*.so", ".so", true},
      {"*.so", "x.so.1", false},
      {"*.so", "d/x.so", false},
      {"a*b*c", "abbbcbc", true},
      {"a*b*c", "abbbcb", false},
      {"**", "a", true},
      {"**", "a/b/c", true},
      {"**/c", "c", true},
      {"**/c", "a/b/c", true},
      {"**/c", "a/b/cc", false},
      {"**/c", "ac", false},
      {"**/c/d", "c/d", true},
      {"*/c*.py", "00/c1.py", true},
      {"*/c*.py", "00/c1.pz", false},
      {"*/c*.py", "00/c1.py/x", false},
      {"a*a", "a", false},
      {"a/**", "a", true},
      {"a/**", "a/b/c", true},
      {"a/**", "ab/c", false},
      {"a/**/c", "a/c", true},
      {"a/**/c", "a/b/b/c", true},
      {"a/**/c", "a/b/b/d", false},
      {"**/x/**", "a/x/b", true},
      {"**/x/**/y", "a/x/b/x/y", true},
      {"a**b", "axxb", true},
      {"a**b", "a/b", false},
      {"*/*", "a/b", true},
      {"*/*", "a", false},
      {"[a]", "a", false},
      {"[a]", "[a]", true},
      {"\\*", "\\x", true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(GlobMatches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
  }
}

TEST(GlobMatches, BoundsBacktracking) {
  std::string pattern;
  for (int i = 0; i < 120; ++i) {
    pattern += "*a";
  }
  pattern += "b";
  EXPECT_FALSE(GlobMatches(pattern, std::string(1000, 'a')));
  std::string deep;
  std::string stars;
  for (int i = 0; i < 200; ++i) {
    deep += "a/";
    stars += "**/a/";
  }
  EXPECT_FALSE(GlobMatches(stars + "b", deep + "c"));
}

}  // namespace
}  // namespace cachewarm::caches
