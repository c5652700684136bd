// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/missing_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachewarm::webhook {
namespace {

using testing::HasSubstr;

TEST(MissingAdmission, PolicyOrWebhookIsEnough) {
  EXPECT_EQ(WhyMissing({.policy_served = true, .policy = true}), "");
  EXPECT_EQ(WhyMissing({.webhook = Registration{}}), "");
  EXPECT_EQ(WhyMissing({.policy_served = true, .webhook = Registration{}}), "");
}

TEST(MissingAdmission, PolicyIsInstalledWhereItIsServed) {
  EXPECT_THAT(WhyMissing({.policy_served = true}), HasSubstr("apply manifests/install.yaml"));
}

TEST(MissingAdmission, WebhookIsInstalledWherePoliciesAreNotServed) {
  EXPECT_THAT(WhyMissing({}), HasSubstr("apply manifests/install-webhook.yaml"));
}

}  // namespace
}  // namespace cachewarm::webhook
