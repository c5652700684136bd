// SPDX-License-Identifier: Apache-2.0
#include "lib/api/accelerators.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

TEST(Accelerators, AreDistinguishedFromOtherDevices) {
  for (const char* yes :
       {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "amd.com/gpu",
        "gpu.intel.com/xe", "google.com/tpu", "aws.amazon.com/neuroncore", "habana.ai/gaudi"}) {
    EXPECT_TRUE(IsAccelerator(yes)) << yes;
  }
  for (const char* no : {"cpu", "memory", "rdma/hca", "vpc.amazonaws.com/efa", "hugepages-2Mi",
                         "nvidia.com/hostdev"}) {
    EXPECT_FALSE(IsAccelerator(no)) << no;
  }
}

TEST(Accelerators, ResourceClaimCountsAsAcceleratorWithoutOthers) {
  const codec::Json claims = {{{"name", "gpu"}, {"request", "a"}}, {{"name", "nic"}}};
  EXPECT_EQ(AcceleratorsOf({{"resources", {{"claims", claims}}}}), 2);
  const codec::Json limits = {{"nvidia.com/gpu", "4"}};
  EXPECT_EQ(AcceleratorsOf({{"resources", {{"claims", claims}, {"limits", limits}}}}), 4)
      << "the claims are then of another kind";
  EXPECT_EQ(AcceleratorsOf({{"resources", {{"claims", "gpu"}}}}), 0);
}

TEST(Accelerators, UnreadableContainerHasNone) {
  EXPECT_EQ(AcceleratorsOf("x"), 0);
}

}  // namespace
}  // namespace cachewarm::api
