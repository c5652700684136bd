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

// The names of all TESTs, TEST_Fs and TEST_Ps of `file`. Each file is searched once.
inline const std::set<std::string>& TestsOf(const std::string& file) {
  static std::map<std::string, std::set<std::string>> known;
  const auto [found, is_new] = known.try_emplace(file);
  if (is_new) {
    const std::string text = SourceText(file);
    const std::regex definition("TEST(_F|_P)?\\(\\s*\\w+,\\s*(\\w+)\\)");
    for (std::sregex_iterator at(text.begin(), text.end(), definition), end; at != end; ++at) {
      found->second.insert((*at)[2]);
    }
  }
  return found->second;
}

// True if the file of `test` defines a test of its name.
inline bool DefinesTest(const NamedTest& test) {
  return TestsOf(test.file).contains(test.name);
}

// Fails for one of `names` that has no entry in `tests`, for an entry that is not in `names`, and
// for a test that its file does not define. `missing` says what a name without an entry lacks.
inline void ExpectATestForEach(const std::set<std::string>& names,
                               const std::map<std::string, NamedTest>& tests,
                               const std::string& missing) {
  EXPECT_GT(names.size(), 5U) << "the source of the names has another form";
  for (const std::string& each : names) {
    EXPECT_TRUE(tests.contains(each)) << each << " has no test " << missing;
  }
  for (const auto& [each, test] : tests) {
    EXPECT_TRUE(names.contains(each)) << each << " does not exist";
    EXPECT_TRUE(DefinesTest(test)) << test.file << " has no test " << test.name;
  }
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
  ExpectATestForEach(flags, tests, "from the file to what it does");
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
  ExpectATestForEach(metrics, tests, "of its value");
  for (const auto& [each, test] : tests) {
    EXPECT_NE(SourceText(test.file).find(each), std::string::npos)
        << test.file << " does not name " << each;
  }
}

}  // namespace cachewarm::fakes
