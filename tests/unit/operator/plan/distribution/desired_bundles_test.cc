// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/desired_bundles.h"

#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

// Returns the bundles of the only target.
std::vector<Digest> Wanted(SnapshotBuilder& builder) {
  const Observed observed = Observe(builder.in());
  const Context context(builder.in(), observed);
  std::vector<Digest> out;
  for (const api::WantedBundle& bundle : WantedBundles(context, Bundles(context), 0)) {
    out.push_back(bundle.digest);
  }
  return out;
}

TEST(WantedBundles, NoneBeforeFirstBuild) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  EXPECT_TRUE(Wanted(builder).empty());
}

TEST(WantedBundles, TemplateBundleAndNewestOther) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Bundle({.node = "n1", .image = "server:older", .digest = "c", .published = 1});
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .published = 5});
  builder.Bundle({.node = "n1", .image = "server:1", .digest = "a", .published = 9});
  const std::vector<Digest> wanted = Wanted(builder);
  EXPECT_EQ(std::set<Digest>(wanted.begin(), wanted.end()),
            (std::set<Digest>{fakes::DigestNamed("a"), fakes::DigestNamed("b")}));
}

}  // namespace
}  // namespace cachewarm::plan
