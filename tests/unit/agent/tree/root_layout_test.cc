// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/root_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lib/api/names.h"

namespace cachewarm::agent {
namespace {

const Mount kMount{"team", "llama", "uid-1", "u1000"};
const std::string kId(32, 'a');

TEST(Layout, MountPathMatchesAdmissionPolicy) {
  EXPECT_EQ(MountPath(kMount), api::CachePath("team", "llama", "uid-1", api::RunAsName(1000)));
  EXPECT_EQ(MountParent(kMount), "team/llama/uid-1");
}

TEST(Layout, LinksAreRelative) {
  EXPECT_EQ(LinkTarget(kId), "../../../.gen/" + kId);
  EXPECT_EQ(TargetGeneration(LinkTarget(kId)), kId);
}

TEST(Layout, RejectsOtherLinkTargets) {
  for (const std::string& text :
       {std::string(), std::string("/etc"), "../../.gen/" + kId, "../../../.gen/" + kId + "/..",
        std::string("../../../.gen/"), std::string("../../../.gen/.."),
        "../../../.gen/../../../../../" + kId}) {
    EXPECT_EQ(TargetGeneration(text), "") << text;
  }
}

TEST(Layout, LinkRecordNamesItsOwner) {
  EXPECT_EQ(OwnerOfLinkRecord(LinkRecordPath(kMount)),
            (std::pair<std::string, std::string>("uid-1", "u1000")));
  for (const char* path : {"", "uid-1", "uid-1.json", "uid-1.u1000", "uid-1.u1000.tmp"}) {
    EXPECT_EQ(OwnerOfLinkRecord(path), (std::pair<std::string, std::string>())) << path;
  }
}

TEST(Layout, HashesCaptureIds) {
  const std::string path = CaptureRecordPath("../../../etc/passwd");
  EXPECT_EQ(path.find(".."), std::string::npos);
  EXPECT_NE(path, CaptureRecordPath("other"));
}

}  // namespace
}  // namespace cachewarm::agent
