// SPDX-License-Identifier: Apache-2.0
// The planted and healthy starts of tests/e2e/why, without a cluster.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/factors/cause.h"
#include "operator/factors/differences.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::factors {
namespace {

using api::StartResult;
using codec::Json;

constexpr std::string_view kSalt = "0123456789abcdef0123456789abcdef";

Json Cases() {
  std::ifstream in(fakes::SourceDir() + "/tests/e2e/why/cases.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return codec::ParseJson(text).value();
}

// Returns the words of the base with the changes of a case.
std::vector<std::string> WordsOf(const Json& base, const Json& changes) {
  auto words = base["args"].get<std::vector<std::string>>();
  const Json replaced = changes.value("replace", Json::object());
  for (const auto& [flag, value] : replaced.items()) {
    const auto at = std::find(words.begin(), words.end(), flag);
    *std::next(at) = value.get<std::string>();
  }
  const Json positions = changes.value("position", Json::object());
  for (const auto& [position, value] : positions.items()) {
    words[std::stoul(position)] = value.get<std::string>();
  }
  const Json appended = changes.value("append", Json::array());
  for (const Json& word : appended) {
    words.push_back(word.get<std::string>());
  }
  return words;
}

Json VariablesOf(const Json& base, const Json& changes) {
  Json merged = base["env"];
  merged.merge_patch(changes.value("env", Json::object()));
  Json out = Json::array();
  for (const auto& [name, value] : merged.items()) {
    out.push_back(value.is_string() ? Json{{"name", name}, {"value", value}}
                                    : Json{{"name", name}, {"valueFrom", value}});
  }
  if (changes.value("reverse", false)) {
    std::reverse(out.begin(), out.end());
  }
  return out;
}

StartFactors FactorsOfCase(const Json& base, const Json& changes) {
  const auto words = WordsOf(base, changes);
  const auto split = words.begin() + changes.value("command_words", 0);
  Json container = {{"name", "server"},
                    {"command", {"/bin/sh", "-c", "engine"}},
                    {"env", VariablesOf(base, changes)},
                    {"mountPath", "/var/cache/cachewarm"}};
  for (auto word = words.begin(); word != words.end(); ++word) {
    container[word < split ? "command" : "args"].push_back(*word);
  }
  return FactorsOf({.container = &container,
                    .image = changes.value("image", base["image"].get<std::string>()),
                    .devices = 0,
                    .container_name = "server",
                    .gpu_type = "cpu",
                    .cpu_class = "x86-64-v4/amd-25-17/00000001",
                    .driver = ""},
                   "node-a", kSalt);
}

api::BundleStatus BundleOf(const Json& base) {
  return {.gpu_type = "cpu",
          .cpu_class = "x86-64-v4/amd-25-17/00000001",
          .image = base["image"].get<std::string>(),
          .builder_pod = "llama-0",
          .factors = Encode(FactorsOfCase(base, Json::object()))};
}

StartResult ResultNamed(const std::string& name) {
  for (const StartResult each : api::kStartResults) {
    if (api::Name(each) == name) {
      return each;
    }
  }
  ADD_FAILURE() << name;
  return StartResult::kUnknown;
}

TEST(Cases, CauseOfEveryPlantedStartIsNamed) {
  const Json cases = Cases();
  const api::BundleStatus bundle = BundleOf(cases["base"]);
  ASSERT_GE(cases["planted"].size(), 20U);
  for (const Json& planted : cases["planted"]) {
    const StartResult result = ResultNamed(planted["result"]);
    const bool serves = result != StartResult::kCold;
    const auto cause = FindCause({.result = result,
                                  .node = "node-a",
                                  .factors = FactorsOfCase(cases["base"], planted),
                                  .bundle = &bundle,
                                  .serves = serves,
                                  .was_active = serves});
    ASSERT_TRUE(cause.has_value()) << planted["name"];
    EXPECT_EQ(cause->factor, planted["factor"]) << planted["name"] << ": " << cause->text;
    EXPECT_LE(cause->text.size(), kCauseBytesMax);
  }
}

TEST(Cases, HealthyStartHasNoCause) {
  const Json cases = Cases();
  const api::BundleStatus bundle = BundleOf(cases["base"]);
  ASSERT_GE(cases["healthy"].size(), 20U);
  for (const Json& healthy : cases["healthy"]) {
    ExplainedStart start{.result = StartResult::kHit,
                         .node = "node-a",
                         .factors = FactorsOfCase(cases["base"], healthy),
                         .bundle = &bundle,
                         .serves = true,
                         .was_active = true};
    EXPECT_FALSE(FindCause(start).has_value()) << healthy["name"];
    EXPECT_TRUE(
        Differences(Decode(bundle.factors), start.factors, Usage::kRead).differences.empty())
        << healthy["name"];
    start.result = StartResult::kMiss;
    EXPECT_EQ(FindCause(start)->factor, "")
        << "blames a factor that no engine keys on: " << healthy["name"];
  }
}

TEST(Cases, NoValueOfAnArgumentOrVariableIsRecorded) {
  const Json cases = Cases();
  for (const char* list : {"planted", "healthy"}) {
    for (const Json& each : cases[list]) {
      for (const auto& [name, value] : FactorsOfCase(cases["base"], each)) {
        if (name.starts_with("env/") || name.starts_with("args/")) {
          EXPECT_TRUE(value.starts_with(kHashed) || value.starts_with(kPodPrefix) ||
                      value.starts_with(kNodePrefix))
              << name << " " << value;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cachewarm::factors
