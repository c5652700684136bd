// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/warmup_mount.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::agent {
namespace {

const Mount kGood{"team", "llama", "0b1f5f0e-9c1e-4a58-9a0e-2f8d2b6f7a11", "u1000"};

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

}  // namespace
}  // namespace cachewarm::agent
