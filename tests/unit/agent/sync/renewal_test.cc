// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/sync/plan.h"
#include "agent/sync/tree_names.h"
#include "tests/unit/agent/sync/described_node.h"

// Renewed trees, and the files that a fetch reuses of other trees.
namespace cachewarm::agent {
namespace {

using Texts = std::vector<std::string>;

TEST(Plan, RenewActivatesEmptyTreeAndFetchesAgain) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.renew = 1;
  const std::string fresh = GenerationId(MountOf(warmup), {DigestNumber(1)}, 1);
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  EXPECT_EQ(node.Steps(), (Texts{"renew u1000 1", fmt::format("fetch u1000 {} of 1", fresh)}));
}

TEST(Plan, RenewActivatesExistingTree) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.renew = 1;
  const std::string fresh = GenerationId(MountOf(warmup), {DigestNumber(1)}, 1);
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  node.inventory.generations[fresh];
  EXPECT_EQ(node.Steps(), Texts{"activate u1000 " + fresh});
}

TEST(Plan, RenewOfColdTreeMakesNewColdTree) {
  api::WantedWarmup warmup = Warmup();
  warmup.renew = 2;
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), ColdId(MountOf(warmup), 0));
  EXPECT_EQ(node.Steps(), Texts{"renew u1000 2"});
  node.inventory.links[MountOf(warmup)].renew = 2;
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, KeepsRenewedTree) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.renew = 3;
  Node node;
  node.Want(warmup).Linked(MountOf(warmup), GenerationId(MountOf(warmup), {DigestNumber(1)}, 3));
  node.inventory.links[MountOf(warmup)].renew = 3;
  EXPECT_EQ(node.Steps(), Texts{});
}

TEST(Plan, UpdateReusesActiveTreesOfWarmup) {
  api::WantedWarmup warmup = Warmup({Bundle(2)});
  warmup.run_as = {"u1000", "u2000"};
  api::WantedWarmup other = Warmup();
  other.uid = "uid-2";
  const Mount first = MountOf(warmup);
  const Mount second = MountOf(warmup, "u2000");
  Node node;
  node.Want(warmup);
  node.Shows(first, {DigestNumber(1)}).Shows(second, {DigestNumber(1)});
  node.Shows(MountOf(other), {DigestNumber(1)});
  node.Linked({"team", "llama", "uid-1", "image"}, ColdId(first, 0));
  const std::string of_first = GenerationId(first, {DigestNumber(1)});
  const std::string of_second = GenerationId(second, {DigestNumber(1)});
  std::vector<std::vector<std::string>> sources;
  for (const Step& step : node.Make().steps) {
    if (const auto* fetch = std::get_if<Fetch>(&step)) {
      sources.push_back(fetch->sources);
    }
  }
  // The tree of the mount comes first.
  EXPECT_EQ(sources,
            (std::vector<std::vector<std::string>>{{of_first, of_second}, {of_second, of_first}}));
}

TEST(Plan, RenewedTreeReusesNoFiles) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.renew = 1;
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  for (const Step& step : node.Make().steps) {
    if (const auto* fetch = std::get_if<Fetch>(&step)) {
      EXPECT_TRUE(fetch->sources.empty());
    }
  }
}

TEST(Plan, ReplacementOfDamagedTreeReusesNoFiles) {
  api::WantedWarmup warmup = Warmup({Bundle(1)});
  warmup.run_as = {"u1000", "u2000"};
  Node node;
  node.Want(warmup).Shows(MountOf(warmup), {DigestNumber(1)});
  node.Shows(MountOf(warmup, "u2000"), {DigestNumber(1)});
  node.inventory.damaged[GenerationId(MountOf(warmup), {DigestNumber(1)})] = {};
  int fetches = 0;
  for (const Step& step : node.Make().steps) {
    if (const auto* fetch = std::get_if<Fetch>(&step)) {
      EXPECT_TRUE(fetch->sources.empty());
      ++fetches;
    }
  }
  EXPECT_EQ(fetches, 1);
}

}  // namespace
}  // namespace cachewarm::agent
