// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "lib/api/vocabulary.h"
#include "tests/fakes/source_dir.h"
#include "tests/golden/reference/pages.h"

namespace cachewarm::reference {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(fakes::SourceDir() + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The values of the constants whose definition in the header matches `definition`.
std::set<std::string> ConstantsIn(const std::string& header, const std::string& definition) {
  const std::string text = Read(header);
  const std::regex pattern(definition);
  std::set<std::string> values;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    values.insert((*it)[1]);
  }
  return values;
}

TEST(Reference, PagesAreThoseOfTheCode) {
  for (const auto& [name, text] : Pages()) {
    const std::string path = "docs/reference/" + name;
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(fakes::SourceDir() + "/" + path) << text;
    }
    EXPECT_EQ(text, Read(path)) << "`make golden` rewrites " << path;
  }
}

TEST(Reference, EveryReasonHasAMeaning) {
  std::set<std::string> listed;
  for (const api::ReasonMeaning& each : api::ReasonMeanings()) {
    EXPECT_THAT(each.meaning, testing::EndsWith(".")) << each.reason;
    EXPECT_TRUE(listed.emplace(each.reason).second) << each.reason << " has two rows";
  }
  EXPECT_EQ(listed, ConstantsIn("lib/api/reasons.h", R"(string_view k\w+ =\s*"([A-Za-z]+)\")"));
}

TEST(Reference, EveryNameHasAMeaning) {
  std::set<std::string> listed;
  for (const api::NameMeaning& each : api::NameMeanings()) {
    EXPECT_THAT(each.meaning, testing::EndsWith(".")) << each.name;
    listed.emplace(each.name);
  }
  const auto names =
      ConstantsIn("lib/api/names.h", R"(\"((?:[a-z.-]+\.)?cachewarm\.io/[A-Za-z-]+)\")");
  for (const std::string& name : names) {
    if (name != "cachewarm.io/v1alpha1") {
      EXPECT_TRUE(listed.contains(name)) << name << " has no row in lib/api/vocabulary.cc";
    }
  }
}

}  // namespace
}  // namespace cachewarm::reference
