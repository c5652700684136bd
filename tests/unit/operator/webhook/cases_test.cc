// SPDX-License-Identifier: Apache-2.0
// Runs the cases of tests/admission against the pure function.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "operator/webhook/pod_injection.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;
namespace stdfs = std::filesystem;

constexpr char kNamespace[] = "default";
constexpr char kUid[] = "u-1";

void Replace(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    text.replace(at, what.size(), with);
  }
}

std::vector<Json> ReadCases() {
  std::vector<Json> cases;
  std::set<stdfs::path> files;
  for (const auto& file :
       stdfs::directory_iterator(stdfs::path(fakes::SourceDir()) / "tests/admission")) {
    if (file.path().extension() == ".yaml") {
      files.insert(file.path());
    }
  }
  for (const stdfs::path& path : files) {
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    Replace(text, "$NAMESPACE", kNamespace);
    Replace(text, "$UID", kUid);
    auto documents = codec::ParseYamlStream(text);
    EXPECT_TRUE(documents.ok()) << path << documents.status();
    cases.insert(cases.end(), documents->begin(), documents->end());
  }
  return cases;
}

Warmup MakeWarmup(const std::string& name, const Json& differs) {
  Json injection = {{"labels", {{"app", "llama"}}},
                    {"container", "c"},
                    {"gate", false},
                    {"env", Json::array({{{"name", "TORCHINDUCTOR_CACHE_DIR"},
                                          {"value", "/var/cache/cachewarm/inductor"}}})}};
  Json metadata = {{"name", name}, {"namespace", kNamespace}, {"uid", kUid}};
  if (!differs.is_null()) {
    injection.update(differs);
    metadata["labels"] = {{std::string(api::kInjectLabel), "true"}};
  }
  auto decoded = api::DecodeCacheWarmup(
      {{"metadata", metadata},
       {"spec",
        {{"workloadRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "a"}}}}},
       {"status", {{"injection", injection}}}});
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return std::make_shared<const api::CacheWarmup>(*std::move(decoded));
}

std::vector<Warmup> WarmupsOf(const Json& each) {
  std::vector<Warmup> warmups;
  const Json all = each.value("warmups", Json{{"llama", Json::object()}});
  for (const auto& [name, differs] : all.items()) {
    warmups.push_back(MakeWarmup(name, differs));
  }
  return warmups;
}

// For the API server an absent list equals an empty one.
void DropEmpty(Json& value) {
  if (!value.is_structured()) {
    return;
  }
  for (auto member = value.begin(); member != value.end();) {
    DropEmpty(*member);
    const bool drop = value.is_object() && member->is_array() && member->empty();
    member = drop ? value.erase(member) : std::next(member);
  }
}

Json Expected(const Json& each) {
  const Json& expected = each["expected"];
  if (expected == "same") {
    return each["pod"];
  }
  return expected.is_array() ? expected.front() : expected;
}

class Cases : public ::testing::TestWithParam<Json> {};

TEST_P(Cases, MatchesExpectedPod) {
  Json pod = GetParam()["pod"];
  Inject(WarmupsOf(GetParam()), api::kDefaultRoot, pod);
  DropEmpty(pod);
  EXPECT_EQ(pod, Expected(GetParam())) << Json::diff(Expected(GetParam()), pod).dump(1);
}

TEST_P(Cases, InjectionIsIdempotent) {
  Json once = GetParam()["pod"];
  Inject(WarmupsOf(GetParam()), api::kDefaultRoot, once);
  Json twice = once;
  Inject(WarmupsOf(GetParam()), api::kDefaultRoot, twice);
  EXPECT_EQ(once, twice);
}

// Policy and webhook compute the same, so the second of them changes nothing.
TEST_P(Cases, InjectedPodNeedsNoPatch) {
  Json pod = Expected(GetParam());
  Inject(WarmupsOf(GetParam()), api::kDefaultRoot, pod);
  DropEmpty(pod);
  EXPECT_EQ(pod, Expected(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Admission, Cases, ::testing::ValuesIn(ReadCases()), [](const auto& info) {
  std::string name = info.param["case"].template get<std::string>();
  for (char& c : name) {
    c = isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
});

}  // namespace
}  // namespace cachewarm::webhook
