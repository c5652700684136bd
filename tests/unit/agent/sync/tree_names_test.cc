// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/tree_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::agent {
namespace {

const Mount kMount{"team", "llama", "0b1f5f0e-9c1e-4a58-9a0e-2f8d2b6f7a11", "u1000"};

Digest DigestNumber(int number) {
  return DigestOf(std::to_string(number));
}

TEST(GenerationId, IgnoresOrderAndRepetition) {
  const Digest a = DigestNumber(1);
  const Digest b = DigestNumber(2);
  const std::string id = GenerationId(kMount, {a, b});
  EXPECT_EQ(id, GenerationId(kMount, {b, a}));
  EXPECT_EQ(id, GenerationId(kMount, {b, a, b}));
  EXPECT_TRUE(IsGenerationId(id));
  EXPECT_FALSE(IsColdId(id));
}

TEST(GenerationId, DiffersByMountAndBundles) {
  const Digest a = DigestNumber(1);
  const std::string id = GenerationId(kMount, {a});
  Mount other_uid = kMount;
  other_uid.uid = "another";
  Mount other_user = kMount;
  other_user.run_as = "image";
  EXPECT_NE(id, GenerationId(other_uid, {a}));
  EXPECT_NE(id, GenerationId(other_user, {a}));
  EXPECT_NE(id, GenerationId(kMount, {DigestNumber(2)}));
  EXPECT_NE(id, GenerationId(kMount, {a, DigestNumber(2)}));
}

TEST(GenerationId, DiffersByRenew) {
  const Digest a = DigestNumber(1);
  EXPECT_EQ(GenerationId(kMount, {a}), GenerationId(kMount, {a}, 0));
  EXPECT_NE(GenerationId(kMount, {a}, 1), GenerationId(kMount, {a}));
  EXPECT_NE(GenerationId(kMount, {a}, 1), GenerationId(kMount, {a}, 2));
}

TEST(GenerationId, IsStableAcrossVersions) {
  const Digest digest = Digest::FromHex(std::string(64, 'a'));
  const Mount mount{"ns", "w", "uid-1", "image"};
  EXPECT_EQ(
      GenerationId(mount, {digest}),
      DigestOf("generation 1\nuid-1\nimage\n" + std::string(64, 'a') + "\n").hex().substr(0, 32));
}

TEST(ColdId, DiffersByAttempt) {
  EXPECT_NE(ColdId(kMount, 0), ColdId(kMount, 1));
  EXPECT_EQ(ColdId(kMount, 0), ColdId(kMount, 0));
  EXPECT_TRUE(IsColdId(ColdId(kMount, 0)));
  EXPECT_TRUE(IsGenerationId(ColdId(kMount, 7)));
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
