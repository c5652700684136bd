// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/fakes/source_dir.h"

namespace cachewarm::fakes {

// A test by the file below the source tree that holds it and its name.
struct NamedTest {
  std::string file;
  std::string name;
};

inline std::string SourceText(const std::string& file) {
  std::ifstream in(fakes::SourceDir() + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whether `file` defines a TEST, TEST_F or TEST_P of that name.
inline bool DefinesTest(const NamedTest& test) {
  const std::regex definition("TEST(_F|_P)?\\(\\s*\\w+,\\s*" + test.name + "\\)");
  return std::regex_search(SourceText(test.file), definition);
}

// Fails for a flag of `help` that has no entry in `tests`, for an entry without such a flag, and
// for a test that its file does not define. --help, --version and requests are no settings.
inline void ExpectATestForEverySetting(const std::string& help,
                                       const std::map<std::string, NamedTest>& tests) {
  const std::set<std::string> no_settings = {"--help", "--version", "--print-node-facts"};
  std::set<std::string> flags;
  const std::regex flag("(^|\\n) *(--[a-z0-9-]+)");
  for (std::sregex_iterator at(help.begin(), help.end(), flag), end; at != end; ++at) {
    if (!no_settings.contains((*at)[2])) {
      flags.insert((*at)[2]);
    }
  }
  EXPECT_GT(flags.size(), 5U) << "the text of --help has another form";
  for (const std::string& each : flags) {
    EXPECT_TRUE(tests.contains(each)) << each << " has no test from the file to what it does";
  }
  for (const auto& [each, test] : tests) {
    EXPECT_TRUE(flags.contains(each)) << each << " is not in --help";
    EXPECT_TRUE(DefinesTest(test)) << test.file << " has no test " << test.name;
  }
}

// Fails for a metric named in `source` that has no entry in `tests`, for an entry that `source`
// does not name, and for a test that is not there or whose file does not name the metric.
inline void ExpectATestForEveryMetric(const std::string& source,
                                      const std::map<std::string, NamedTest>& tests) {
  const std::string text = SourceText(source);
  std::set<std::string> metrics;
  const std::regex name("\"(cachewarm_[a-z_]+)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    metrics.insert((*at)[1]);
  }
  EXPECT_GT(metrics.size(), 5U) << source << " has another form";
  for (const std::string& each : metrics) {
    EXPECT_TRUE(tests.contains(each)) << each << " has no test of its value";
  }
  for (const auto& [each, test] : tests) {
    EXPECT_TRUE(metrics.contains(each)) << each << " is not in " << source;
    EXPECT_TRUE(DefinesTest(test)) << test.file << " has no test " << test.name;
    EXPECT_NE(SourceText(test.file).find(each), std::string::npos)
        << test.file << " does not name " << each;
  }
}

}  // namespace cachewarm::fakes
