// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"
#include "tests/sim/seeds.h"

// Many nodes whose running pods all compile late. Agents answer as real ones do, a minute at a
// time, and leaders end between the writes of a plan.
namespace cachewarm::sim {
namespace {

using fakes::At;

constexpr int kNodes = 200;
constexpr int kStep = 60;
constexpr int kInterval = 30 * 60;

using Units = std::set<int>;

class HarvestSim {
 public:
  explicit HarvestSim(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kNodes; ++i) {
      names_.push_back(fmt::format("n{:03}", i));
      builder_.Node({.name = names_.back()});
    }
    builder_.Accepted();
    builder_.warmup().spec.harvest = true;
    builder_.Bundle({.node = names_[0], .native = false, .active = names_});
    content_[fakes::DigestNamed("a").ToString()] = {};
    for (const std::string& name : names_) {
      builder_.Pod({.name = "pod-" + name, .node = name, .created = 1, .started = 2, .ready = 9});
      active_[name] = fakes::DigestNamed("a");
    }
  }

  void Compile(const std::string& node, int unit) { late_[node].insert(unit); }
  void CompileEverywhere(int unit) {
    for (const std::string& name : names_) {
      Compile(name, unit);
    }
  }
  void EndLeaders(double chance) { crash_chance_ = chance; }

  void Run(int seconds) {
    for (const int end = now_ + seconds; now_ < end; now_ += kStep) {
      builder_.Now(now_);
      RunAgents();
      RunOperator();
      Check();
    }
  }

  const std::vector<int>& begun() const { return begun_; }
  const Units& published() {
    return content_.at(builder_.status().bundles.at(0).digest.ToString());
  }
  const std::string& violation() const { return violation_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  static std::string SetOf(const Units& units) { return fmt::format("{}", fmt::join(units, ",")); }

  bool Crashes() { return std::uniform_real_distribution<>(0, 1)(random_) < crash_chance_; }

  void RunAgents() {
    for (const std::string& name : names_) {
      api::NodeCache& cache = builder_.cache(name);
      api::NodeWarmup& reported = builder_.reported(name);
      if (!cache.spec.warmups.empty() && !cache.spec.warmups[0].bundles.empty()) {
        active_[name] = cache.spec.warmups[0].bundles[0].digest;
      }
      reported.bundles = {{.digest = active_[name], .state = api::BundleState::kActive}};
      const Units& bundle = content_.at(active_[name].ToString());
      const Units& late = late_[name];
      const auto lacking =
          std::count_if(late.begin(), late.end(), [&](int unit) { return !bundle.contains(unit); });
      reported.harvestable = {};
      if (lacking > 0) {
        reported.harvestable = {.generation = "tree-" + name,
                                .run_as = "image",
                                .units = static_cast<int>(lacking),
                                .set = SetOf(late)};
      }
      cache.status.captures.clear();
      for (const api::CaptureRequest& request : cache.spec.captures) {
        cache.status.captures.push_back(Capture(name, request));
      }
    }
  }

  api::CaptureStatus Capture(const std::string& node, const api::CaptureRequest& request) {
    const std::string base = request.base_digest.ToString();
    Units all = content_.at(base);
    const Units& late = late_[node];
    all.insert(late.begin(), late.end());
    Digest digest = request.base_digest;
    if (all != content_.at(base)) {
      digest = DigestOf(SetOf(all));
      content_[digest.ToString()] = all;
    }
    return {.id = request.id,
            .state = api::CaptureState::kPushed,
            .digest = digest,
            .bytes = 1000,
            .files = static_cast<int>(all.size()),
            .native = false};
  }

  void RunOperator() {
    const plan::Plan plan = builder_.Decide();
    if (fakes::ReasonOf(plan, "Warm") != "Distributed") {
      Violate("a node is not warm");
    }
    if (Crashes()) {
      return;
    }
    builder_.status() = plan.status;
    for (const plan::NodeEntries& wants : plan.nodes) {
      if (Crashes()) {
        return;
      }
      builder_.cache(wants.node).spec = wants.spec;
    }
  }

  void Check() {
    size_t requests = 0;
    for (const std::string& name : names_) {
      requests += builder_.cache(name).spec.captures.size();
    }
    const auto& harvests = builder_.status().harvests;
    if (requests > 1) {
      Violate(fmt::format("{} nodes are captured", requests));
    }
    if (harvests.empty() || harvests[0].number == number_) {
      return;
    }
    number_ = harvests[0].number;
    const int at = static_cast<int>((harvests[0].started_time - At(0)).count() / 1000);
    if (!begun_.empty() && at - begun_.back() < kInterval) {
      Violate("two harvests within the interval");
    }
    begun_.push_back(at);
    if (!sets_.insert(harvests[0].set).second) {
      Violate("the set " + harvests[0].set + " is harvested again");
    }
  }

  void Violate(const std::string& what) {
    if (violation_.empty()) {
      violation_ = fmt::format("second {}: {}", now_, what);
    }
  }

  std::mt19937 random_;
  fakes::SnapshotBuilder builder_;
  int now_ = 600;
  double crash_chance_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Digest> active_;  // by node
  std::map<std::string, Units> late_;     // by node
  std::map<std::string, Units> content_;  // by digest
  int number_ = 0;
  std::vector<int> begun_;
  std::set<std::string> sets_;
  std::string violation_;
};

TEST(HarvestOfManyNodes, EqualSetsOnEveryNodeAreHarvestedOnce) {
  HarvestSim sim(1);
  sim.CompileEverywhere(1);
  sim.Run(kInterval + 600);
  EXPECT_EQ(sim.begun().size(), 1U);
  EXPECT_EQ(sim.published(), Units{1});
  EXPECT_EQ(sim.violation(), "");
}

TEST(HarvestOfManyNodes, NodesThatCompileAllTheTimeAreHarvestedOncePerInterval) {
  HarvestSim sim(1);
  for (int i = 0; i < 24; ++i) {
    sim.CompileEverywhere(i);
    sim.Compile(sim.names()[static_cast<size_t>(i)], 1000 + i);
    sim.Run(300);
  }
  EXPECT_EQ(sim.begun().size(), 4U) << "in two hours";
  EXPECT_EQ(sim.violation(), "");
}

class EveryHarvest : public testing::TestWithParam<int> {};

TEST_P(EveryHarvest, LeadersThatEndInTheMiddleHarvestNothingTwice) {
  HarvestSim sim(static_cast<uint32_t>(GetParam()));
  sim.EndLeaders(0.2);
  sim.CompileEverywhere(1);
  sim.Run(kInterval);
  sim.Compile(sim.names()[7], 2);
  sim.Compile(sim.names()[9], 3);
  sim.Run(kInterval);
  sim.EndLeaders(0);
  sim.Run(2 * kInterval);
  EXPECT_EQ(sim.published(), (Units{1, 2, 3}));
  EXPECT_EQ(sim.violation(), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryHarvest, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
