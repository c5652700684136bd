// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/mount.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::agent {
namespace {

const Mount kGood{"team", "llama", "0b1f5f0e-9c1e-4a58-9a0e-2f8d2b6f7a11", "u1000"};

Digest DigestNumber(int number) {
  return DigestOf(std::to_string(number));
}

TEST(CheckMount, AcceptsKubernetesNames) {
  EXPECT_TRUE(CheckMount(kGood).ok());
  Mount image = kGood;
  image.run_as = "image";
  EXPECT_TRUE(CheckMount(image).ok());
  Mount root = kGood;
  root.run_as = "u0";
  EXPECT_TRUE(CheckMount(root).ok());
  Mount dotted = kGood;
  dotted.name = "llama-3.1-8b";
  EXPECT_TRUE(CheckMount(dotted).ok());
}

TEST(CheckMount, RejectsUnsafePartByName) {
  struct Case {
    std::string Mount::*part;
    std::string value;
    std::string named;
  };
  const std::string long_name(254, 'a');
  const std::vector<Case> cases = {
      {&Mount::ns, "", "namespace"},
      {&Mount::ns, ".gen", "namespace"},
      {&Mount::ns, "..", "namespace"},
      {&Mount::ns, "a/b", "namespace"},
      {&Mount::ns, "Team", "namespace"},
      {&Mount::ns, long_name, "namespace"},
      {&Mount::ns, std::string("a\0b", 3), "namespace"},
      {&Mount::name, ".", "name"},
      {&Mount::name, "a b", "name"},
      {&Mount::name, "-a", "name"},
      {&Mount::name, "a-", "name"},
      {&Mount::uid, "", "uid"},
      {&Mount::uid, "../../etc", "uid"},
      {&Mount::uid, "-x", "uid"},
      {&Mount::uid, std::string(65, 'a'), "uid"},
      {&Mount::run_as, "", "runAs"},
      {&Mount::run_as, "1000", "runAs"},
      {&Mount::run_as, "u", "runAs"},
      {&Mount::run_as, "u-1", "runAs"},
      {&Mount::run_as, "u1000/..", "runAs"},
      {&Mount::run_as, "u007", "runAs"},
      {&Mount::run_as, "u4294967295", "runAs"},
      {&Mount::run_as, "u4294967296", "runAs"},
      {&Mount::run_as, "Image", "runAs"},
      {&Mount::run_as, "u1000 ", "runAs"},
  };
  for (const Case& each : cases) {
    Mount mount = kGood;
    mount.*each.part = each.value;
    const absl::Status status = CheckMount(mount);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each.value;
    EXPECT_NE(std::string(status.message()).find(each.named), std::string::npos) << status;
  }
}

TEST(RunAsUser, ParsesUserNumber) {
  EXPECT_EQ(RunAsUser("u0"), 0);
  EXPECT_EQ(RunAsUser("u1000"), 1000);
  EXPECT_EQ(RunAsUser("u4294967294"), 4294967294);
  EXPECT_EQ(RunAsUser("image"), -1);
  EXPECT_EQ(RunAsUser(""), -1);
}

TEST(GenerationId, IgnoresOrderAndRepetition) {
  const Digest a = DigestNumber(1);
  const Digest b = DigestNumber(2);
  const std::string id = GenerationId(kGood, {a, b});
  EXPECT_EQ(id, GenerationId(kGood, {b, a}));
  EXPECT_EQ(id, GenerationId(kGood, {b, a, b}));
  EXPECT_TRUE(IsGenerationId(id));
  EXPECT_FALSE(IsColdId(id));
}

TEST(GenerationId, DiffersByMountAndBundles) {
  const Digest a = DigestNumber(1);
  const std::string id = GenerationId(kGood, {a});
  Mount other_uid = kGood;
  other_uid.uid = "another";
  Mount other_user = kGood;
  other_user.run_as = "image";
  EXPECT_NE(id, GenerationId(other_uid, {a}));
  EXPECT_NE(id, GenerationId(other_user, {a}));
  EXPECT_NE(id, GenerationId(kGood, {DigestNumber(2)}));
  EXPECT_NE(id, GenerationId(kGood, {a, DigestNumber(2)}));
}

TEST(GenerationId, DiffersByRenew) {
  const Digest a = DigestNumber(1);
  EXPECT_EQ(GenerationId(kGood, {a}), GenerationId(kGood, {a}, 0));
  EXPECT_NE(GenerationId(kGood, {a}, 1), GenerationId(kGood, {a}));
  EXPECT_NE(GenerationId(kGood, {a}, 1), GenerationId(kGood, {a}, 2));
}

TEST(GenerationId, IsStableAcrossVersions) {
  const Digest digest = Digest::FromHex(std::string(64, 'a'));
  const Mount mount{"ns", "w", "uid-1", "image"};
  EXPECT_EQ(
      GenerationId(mount, {digest}),
      DigestOf("generation 1\nuid-1\nimage\n" + std::string(64, 'a') + "\n").hex().substr(0, 32));
}

TEST(ColdId, DiffersByAttempt) {
  EXPECT_NE(ColdId(kGood, 0), ColdId(kGood, 1));
  EXPECT_EQ(ColdId(kGood, 0), ColdId(kGood, 0));
  EXPECT_TRUE(IsColdId(ColdId(kGood, 0)));
  EXPECT_TRUE(IsGenerationId(ColdId(kGood, 7)));
}

TEST(IsGenerationId, RejectsOtherNames) {
  const std::vector<std::string> others = {"",
                                           ".",
                                           "..",
                                           "cold-",
                                           "cold-1",
                                           "cold-000000000000000g",
                                           "0123",
                                           ".tmp-1-2",
                                           "0123456789abcdef0123456789abcdeF",
                                           "0123456789abcdef0123456789abcdef0"};
  for (const std::string& other : others) {
    EXPECT_FALSE(IsGenerationId(other)) << other;
  }
}

}  // namespace
}  // namespace cachewarm::agent
