// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/gpu_code.h"

#include <gtest/gtest.h>

namespace cachewarm::fingerprint {
namespace {

TEST(RunsOn, FollowsTheCompatibilityRulesOfCudaAndAmd) {
  struct Case {
    const char* code;
    const char* gpu;
    bool runs;
  };
  const Case cases[] = {
      // Machine code: same major version, same or greater minor version.
      {"sm_80", "sm_80", true},
      {"sm_80", "sm_86", true},
      {"sm_80", "sm_89", true},
      {"sm_86", "sm_80", false},
      {"sm_89", "sm_86", false},
      {"sm_80", "sm_90", false},
      {"sm_90", "sm_89", false},
      {"sm_90", "sm_100", false},
      {"sm_100", "sm_103", true},
      {"sm_103", "sm_100", false},
      {"sm_120", "sm_121", true},
      {"sm_100", "sm_120", false},
      // Jetson and DRIVE run only their own code.
      {"sm_80", "sm_87", false},
      {"sm_86", "sm_87", false},
      {"sm_87", "sm_89", false},
      {"sm_87", "sm_87", true},
      {"sm_100", "sm_101", false},
      {"sm_101", "sm_103", false},
      // Architecture-specific code.
      {"sm_90a", "sm_90", true},
      {"sm_90a", "sm_100", false},
      {"sm_100a", "sm_103", false},
      {"compute_90a", "sm_90", true},
      {"compute_90a", "sm_100", false},
      // Family-specific code.
      {"sm_100f", "sm_100", true},
      {"sm_100f", "sm_103", true},
      {"sm_103f", "sm_100", false},
      {"sm_100f", "sm_120", false},
      {"compute_100f", "sm_103", true},
      {"compute_100f", "sm_120", false},
      // PTX runs on newer GPUs.
      {"compute_80", "sm_80", true},
      {"compute_80", "sm_87", true},
      {"compute_80", "sm_120", true},
      {"compute_90", "sm_89", false},
      // AMD: the same architecture only.
      {"gfx942", "gfx942", true},
      {"gfx942", "gfx950", false},
      {"gfx90a", "gfx942", false},
      {"sm_90", "gfx942", false},
      {"gfx942", "sm_90", false},
      // Malformed text runs nowhere.
      {"sm_9", "sm_90", false},
      {"sm_90x", "sm_90", false},
      {"sm_90aa", "sm_90", false},
      {"sm_", "sm_90", false},
      {"90", "sm_90", false},
      {"", "sm_90", false},
      {"sm_90", "", false},
      {"sm_99999", "sm_99999", false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(RunsOn(each.code, each.gpu), each.runs) << each.code << " on " << each.gpu;
  }
}

TEST(ArchitecturesOf, ReadsTheThirdPartOfTheType) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(ArchitecturesOf("nvidia/h200/sm_90"), Texts{"sm_90"});
  EXPECT_EQ(ArchitecturesOf("nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb"), Texts{"sm_80"});
  EXPECT_EQ(ArchitecturesOf("nvidia/a10+l4/sm_86+sm_89"), (Texts{"sm_86", "sm_89"}));
  EXPECT_EQ(ArchitecturesOf("amd/mi300x/gfx942"), Texts{"gfx942"});
  EXPECT_EQ(ArchitecturesOf("cpu"), Texts{});
  EXPECT_EQ(ArchitecturesOf("a/b"), Texts{});
  EXPECT_EQ(ArchitecturesOf(""), Texts{});
}

TEST(HasCodeFor, OneFittingArchitectureIsEnough) {
  EXPECT_TRUE(HasCodeFor({"sm_80", "sm_90a"}, "nvidia/h200/sm_90"));
  EXPECT_TRUE(HasCodeFor({"compute_80", "sm_80"}, "nvidia/h200/sm_90"));
  EXPECT_FALSE(HasCodeFor({"sm_80", "sm_89"}, "nvidia/h200/sm_90"));
  EXPECT_TRUE(HasCodeFor({"sm_89"}, "nvidia/a10+l4/sm_86+sm_89"));
  EXPECT_TRUE(HasCodeFor({}, "nvidia/h200/sm_90")) << "no GPU code is known";
  EXPECT_TRUE(HasCodeFor({"sm_90"}, "cpu")) << "no GPU runs it";
}

}  // namespace
}  // namespace cachewarm::fingerprint
