// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "operator/plan/decisions.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

using Texts = std::map<std::string, std::string>;

inline Texts Labels(const std::string& group) {
  return {{"leaderworkerset.sigs.k8s.io/name", "llama"},
          {"leaderworkerset.sigs.k8s.io/group-index", group}};
}

// Pods r0, r1 and r2 of one group, each on its own node, started at 90, 91 and 92; r0 is the
// builder and is captured at 120.
class Ranks : public testing::Test {
 protected:
  Ranks() {
    for (const char* node : {"n0", "n1", "n2", "n3"}) {
      builder.Node({.name = node});
      builder.cache(node).status.node.extends_bundles = true;
    }
    builder.Accepted();
  }

  void Rank(int number, const Texts& labels = Labels("0")) {
    const std::string n = std::to_string(number);
    builder.Pod({.name = "r" + n,
                 .node = "n" + n,
                 .created = 80,
                 .started = 90 + number,
                 .ready = 110,
                 .labels = labels});
  }

  void Three() {
    for (int number = 0; number < 3; ++number) {
      Rank(number);
    }
  }

  Plan PlanAt(int now) {
    builder.Now(now);
    Plan plan = builder.Decide();
    builder.status() = plan.status;
    for (const NodeEntries& wants : plan.nodes) {
      builder.cache(wants.node).spec = wants.spec;
    }
    return plan;
  }

  const std::vector<api::CaptureRequest>& RequestsTo(int number) {
    return builder.cache("n" + std::to_string(number)).spec.captures;
  }

  // Sets the agent's answer to the request of a rank.
  void Answer(int number, api::CaptureStatus answer) {
    ASSERT_EQ(RequestsTo(number).size(), 1U) << number;
    answer.id = RequestsTo(number)[0].id;
    builder.cache("n" + std::to_string(number)).status.captures = {answer};
  }

  void Pushed(int number, const std::string& digest, int files = 1) {
    Answer(number, {.state = api::CaptureState::kPushed,
                    .digest = fakes::DigestNamed(digest),
                    .bytes = files * 100,
                    .files = files,
                    .native = number == 1,
                    .compile_seconds = 10.0 + number});
  }

  void CaptureBuilder() {
    PlanAt(111);
    Pushed(0, "a");
    PlanAt(120);
  }

  const api::BuilderStatus& entry() { return builder.status().builders.at(0); }
  const std::vector<api::BundleStatus>& bundles() { return builder.status().bundles; }

  fakes::SnapshotBuilder builder;
};

}  // namespace cachewarm::plan
