// SPDX-License-Identifier: Apache-2.0 Passes every file of the corpus, and a few hundred
// deterministic mutations of each, to its target, so that inputs found by the fuzzer are tested on
// every machine.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/source_dir.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

namespace stdfs = std::filesystem;

constexpr int kBent = 200;

stdfs::path Folder(const Target& target) {
  return stdfs::path(fakes::SourceDir()) / "tests/fuzz/corpus" / target.name;
}

std::string Content(const stdfs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns `bytes` with one to four small changes, determined by the seed.
std::string Bend(std::string bytes, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](size_t bound) { return random() % std::max<size_t>(1, bound); };
  for (size_t wounds = 1 + below(4); wounds > 0 && !bytes.empty(); --wounds) {
    const size_t at = below(bytes.size());
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes.erase(at, 1 + below(16));
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64)));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, EveryTargetHasInputs) {
  ASSERT_TRUE(stdfs::is_directory(Folder(GetParam())));
  EXPECT_FALSE(stdfs::is_empty(Folder(GetParam())));
}

TEST_P(Corpus, DoesNotCrashTargets) {
  for (const auto& file : stdfs::directory_iterator(Folder(GetParam()))) {
    const std::string bytes = Content(file.path());
    SCOPED_TRACE(file.path());
    GetParam().run(bytes);
    for (unsigned seed = 0; seed < kBent; ++seed) {
      GetParam().run(Bend(bytes, seed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, ::testing::ValuesIn(AllTargets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cachewarm::fuzz
