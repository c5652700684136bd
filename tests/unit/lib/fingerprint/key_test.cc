// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/key.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

namespace cachewarm::fingerprint {
namespace {

using ::testing::HasSubstr;

KeyFactors Factors() {
  return {.gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
          .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
          .image = "registry.example/llm:v1",
          .devices = 1,
          .container = "server"};
}

std::string Key(const KeyFactors& factors) {
  const absl::StatusOr<std::string> key = KeyOf(factors);
  EXPECT_TRUE(key.ok()) << key.status();
  return key.value_or("");
}

TEST(KeyOf, StaysTheSameAcrossReleases) {
  // Published bundles are found by their key.
  EXPECT_EQ(Key(Factors()), "47c0364c870fa68ba94cadddace136ff56fe3996799808fa5ec0c7e42d28179c");
}

TEST(KeyOf, DiffersByEachFactor) {
  const std::function<void(KeyFactors&)> changes[] = {
      [](KeyFactors&) {},
      [](KeyFactors& f) { f.gpu_type = "nvidia/h100-pcie/sm_90"; },
      [](KeyFactors& f) { f.gpu_type += "/mig-1g.10gb"; },
      [](KeyFactors& f) { f.cpu_class = "x86-64-v3/amd-25-17/5c0d9f22"; },
      [](KeyFactors& f) { f.image = "registry.example/llm:v2"; },
      [](KeyFactors& f) { f.devices = 2; },
      [](KeyFactors& f) { f.container = "sidecar"; },
  };
  std::set<std::string> keys;
  for (const auto& change : changes) {
    KeyFactors factors = Factors();
    change(factors);
    keys.insert(Key(factors));
  }
  EXPECT_EQ(keys.size(), std::size(changes));
}

TEST(KeyOf, SeparatesFactors) {
  KeyFactors a = Factors();
  KeyFactors b = Factors();
  a.image = "x\",\"container\":\"y";
  a.container = "z";
  b.image = "x";
  b.container = "y";
  EXPECT_NE(Key(a), Key(b));
}

TEST(KeyOf, NamesTheInvalidFactor) {
  const std::pair<std::function<void(KeyFactors&)>, const char*> cases[] = {
      {[](KeyFactors& f) { f.gpu_type = ""; }, "gpuType"},
      {[](KeyFactors& f) { f.gpu_type = "H100"; }, "gpuType"},
      {[](KeyFactors& f) { f.cpu_class = ""; }, "cpuClass"},
      {[](KeyFactors& f) { f.image = ""; }, "image"},
      {[](KeyFactors& f) { f.image = std::string(1025, 'x'); }, "image"},
      {[](KeyFactors& f) { f.devices = -1; }, "devices"},
      {[](KeyFactors& f) { f.devices = 1025; }, "devices"},
      {[](KeyFactors& f) { f.container = ""; }, "container"},
      {[](KeyFactors& f) { f.container = std::string(64, 'c'); }, "container"},
  };
  for (const auto& [change, field] : cases) {
    KeyFactors factors = Factors();
    change(factors);
    const absl::Status status = KeyOf(factors).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(KeyOf, AcceptsFactorsUpToTheirLimits) {
  const std::function<void(KeyFactors&)> changes[] = {
      [](KeyFactors& f) { f.image = std::string(1024, 'x'); },
      [](KeyFactors& f) { f.devices = 0; },
      [](KeyFactors& f) { f.devices = 1024; },
      [](KeyFactors& f) { f.container = std::string(63, 'c'); },
  };
  for (const auto& change : changes) {
    KeyFactors factors = Factors();
    change(factors);
    EXPECT_TRUE(IsKey(Key(factors)));
  }
}

TEST(KeyOf, RefusesAnImageThatIsNotUtf8) {
  KeyFactors factors = Factors();
  factors.image = "image\xff";
  EXPECT_TRUE(absl::IsInvalidArgument(KeyOf(factors).status()));
}

TEST(IsKey, AcceptsExactly64LowerCaseHexDigits) {
  EXPECT_TRUE(IsKey(Key(Factors())));
  EXPECT_FALSE(IsKey(""));
  EXPECT_FALSE(IsKey(std::string(63, 'a')));
  EXPECT_FALSE(IsKey(std::string(65, 'a')));
  EXPECT_FALSE(IsKey(std::string(63, 'a') + "A"));
  EXPECT_FALSE(IsKey(std::string(63, 'a') + "/"));
}

TEST(Key8, ReturnsTheFirst8Digits) {
  EXPECT_EQ(Key8(std::string(8, '1') + std::string(56, '2')), "11111111");
  EXPECT_EQ(Key8("abc"), "abc");
}

}  // namespace
}  // namespace cachewarm::fingerprint
