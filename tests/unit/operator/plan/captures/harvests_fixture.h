// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

using api::CaptureState;
using fakes::At;
using fakes::DigestNamed;
using fakes::SnapshotBuilder;

inline constexpr int kInterval = 30 * 60;  // seconds

// Nodes n1 to n3 have the bundle "a" and a running pod each. It is second 100.
class Harvests : public testing::Test {
 protected:
  Harvests() {
    for (const char* node : {"n1", "n2", "n3"}) {
      builder.Node({.name = node});
    }
    builder.Accepted();
    builder.warmup().spec.harvest = true;
    builder.Bundle({.node = "n1", .published = 5, .native = false, .active = {"n1", "n2", "n3"}});
    for (const std::string node : {"n1", "n2", "n3"}) {
      RunPod("pod-" + node, node);
    }
    builder.Now(100);
    Apply(builder.Decide());
  }

  void RunPod(const std::string& name, const std::string& node, int started = 20) {
    builder.Pod({.name = name,
                 .node = node,
                 .created = started - 10,
                 .started = started,
                 .ready = started + 10});
  }
  void Apply(const Plan& plan) {
    builder.status() = plan.status;
    for (const NodeEntries& wants : plan.nodes) {
      builder.cache(wants.node).spec = wants.spec;
    }
  }
  Plan Next(int second) {
    builder.Now(second);
    Plan plan = builder.Decide();
    Apply(plan);
    return plan;
  }
  void Offer(const std::string& node, int units, const std::string& set) {
    builder.reported(node).harvestable = {
        .generation = "tree-" + node, .run_as = "image", .units = units, .set = set};
  }
  // The only request of the node; null if there is none.
  const api::CaptureRequest* RequestOn(const std::string& node) {
    const auto& captures = builder.cache(node).spec.captures;
    return captures.empty() ? nullptr : &captures.front();
  }
  void Answer(const std::string& node, const api::CaptureStatus& answer) {
    api::CaptureStatus status = answer;
    status.id = RequestOn(node)->id;
    builder.cache(node).status.captures = {status};
  }
  static api::CaptureStatus Pushed(const std::string& digit) {
    return {.state = CaptureState::kPushed,
            .digest = DigestNamed(digit),
            .bytes = 1500,
            .files = 14,
            .native = false};
  }
  // Harvests from n1 at second 110, with this result.
  Plan HarvestedFromN1(const std::string& digit) {
    Offer("n1", 3, "s1");
    Next(110);
    Answer("n1", Pushed(digit));
    return Next(120);
  }
  // No harvest begins after `make`, and the status says why with these words.
  void ExpectRefusal(const std::function<void(SnapshotBuilder&)>& make, const char* words) {
    Offer("n1", 3, "s1");
    make(builder);
    Next(110);
    EXPECT_EQ(RequestOn("n1"), nullptr);
    ASSERT_EQ(builder.status().harvests.size(), 1U);
    EXPECT_THAT(Status().refusal, testing::HasSubstr(words));
    EXPECT_EQ(Status().number, 0);
  }
  const api::HarvestStatus& Status() { return builder.status().harvests.at(0); }
  const api::BundleStatus& Bundle() { return builder.status().bundles.at(0); }

  SnapshotBuilder builder;
};

struct RefusalCase {
  const char* name;
  std::function<void(SnapshotBuilder&)> make;
  const char* words;
};

}  // namespace cachewarm::plan
