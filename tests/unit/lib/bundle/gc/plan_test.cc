// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/gc/plan.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/key_tag.h"

namespace cachewarm::bundle {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const std::string kKeyA(64, 'a');
const std::string kKeyB(64, 'b');
const WallTime kNow{std::chrono::hours(24 * 365 * 50)};

Digest Named(const std::string& name) {
  return DigestOf(name);
}

// A bundle of 10 bytes and a config and a layer of 100 bytes each, published `age` ago.
GcManifest BundleOf(const std::string& name, Duration age, const std::string& key = kKeyA) {
  GcManifest manifest{.bytes = 10, .key = key};
  manifest.stored = {.digest = Named(name), .published = kNow - age};
  manifest.blobs = {{.digest = Named(name + " layer"), .bytes = 100},
                    {.digest = Named(name + " config"), .bytes = 100}};
  return manifest;
}

GcManifest Tagged(GcManifest manifest, const std::string& tag) {
  manifest.stored.tags.push_back(tag);
  return manifest;
}

GcManifest ReferrerOf(const std::string& subject, const std::string& name, Duration age) {
  GcManifest manifest = BundleOf(name, age, "");
  manifest.subject = Named(subject);
  return manifest;
}

std::map<std::string, std::string> Reasons(const std::vector<GcManifest>& manifests,
                                           const GcPolicy& policy,
                                           const std::vector<std::string>& names) {
  std::map<Digest, std::string> by_digest;
  for (const std::string& name : names) {
    by_digest[Named(name)] = name;
  }
  std::map<std::string, std::string> found;
  for (const GcRepositoryPlan& plan :
       PlanGc({{.name = "team/llama", .manifests = manifests, .complete = true}}, policy)) {
    for (const GcItem& item : plan.items) {
      found[by_digest[item.manifest.stored.digest]] = NameOf(item.reason);
    }
  }
  return found;
}

TEST(GcPlan, KeepsTheNewestOfEachKey) {
  const std::vector<GcManifest> manifests = {BundleOf("1", hours(30)), BundleOf("2", hours(20)),
                                             BundleOf("3", hours(10)),
                                             BundleOf("b", hours(90), kKeyB)};
  const std::vector<std::string> names = {"1", "2", "3", "b"};
  EXPECT_THAT(Reasons(manifests, {.now = kNow}, names),
              UnorderedElementsAre(Pair("1", "replaced"), Pair("2", "replaced"),
                                   Pair("3", "newest"), Pair("b", "newest")));
  EXPECT_THAT(Reasons(manifests, {.now = kNow, .retain = 2}, names),
              UnorderedElementsAre(Pair("1", "replaced"), Pair("2", "newest"), Pair("3", "newest"),
                                   Pair("b", "newest")));
}

TEST(GcPlan, TheTagOfTheKeyIsNewerThanAnyTime) {
  const std::vector<GcManifest> manifests = {Tagged(BundleOf("1", hours(30)), KeyTagOf(kKeyA)),
                                             BundleOf("2", hours(20))};
  EXPECT_THAT(Reasons(manifests, {.now = kNow}, {"1", "2"}),
              UnorderedElementsAre(Pair("1", "newest"), Pair("2", "replaced")));
}

TEST(GcPlan, WantedAndTaggedBundlesStay) {
  const std::vector<GcManifest> manifests = {
      BundleOf("wanted", hours(40)), Tagged(BundleOf("tagged", hours(30)), "v1"),
      Tagged(BundleOf("dated", hours(20)), DatedTag(KeyTagOf(kKeyA), Named("dated"), kNow)),
      BundleOf("newest", hours(10))};
  EXPECT_THAT(Reasons(manifests, {.now = kNow, .wanted = {Named("wanted")}},
                      {"wanted", "tagged", "dated", "newest"}),
              UnorderedElementsAre(Pair("wanted", "wanted"), Pair("tagged", "tagged"),
                                   Pair("dated", "replaced"), Pair("newest", "newest")));
}

TEST(GcPlan, ABundleIsYoungUntilItsReplacementIsOld) {
  const std::vector<GcManifest> manifests = {BundleOf("1", hours(90)), BundleOf("2", hours(50)),
                                             BundleOf("3", hours(10))};
  // The second one was in use until 10 hours ago.
  EXPECT_THAT(
      Reasons(manifests, {.now = kNow, .older_than = hours(24)}, {"1", "2", "3"}),
      UnorderedElementsAre(Pair("1", "replaced"), Pair("2", "too young"), Pair("3", "newest")));
  // A publisher's clock may be ahead.
  EXPECT_THAT(Reasons({BundleOf("1", -hours(5)), BundleOf("2", -hours(6))},
                      {.now = kNow, .older_than = hours(1)}, {"1", "2"}),
              UnorderedElementsAre(Pair("1", "too young"), Pair("2", "newest")));
}

TEST(GcPlan, WithoutATimeNothingIsDeleted) {
  GcManifest undated = BundleOf("undated", hours(0));
  undated.stored.published.reset();
  EXPECT_THAT(Reasons({undated, BundleOf("new", hours(1))}, {.now = kNow, .expire = Duration(0)},
                      {"undated", "new"}),
              UnorderedElementsAre(Pair("undated", "age unknown"), Pair("new", "newest")));
}

TEST(GcPlan, UnusedKeysExpire) {
  const std::vector<GcManifest> manifests = {BundleOf("a", hours(100)),
                                             BundleOf("b", hours(100), kKeyB)};
  EXPECT_THAT(
      Reasons(manifests, {.now = kNow, .expire = hours(50), .used_keys = {kKeyB}}, {"a", "b"}),
      UnorderedElementsAre(Pair("a", "expired"), Pair("b", "newest")));
  EXPECT_THAT(Reasons(manifests, {.now = kNow, .expire = hours(101)}, {"a", "b"}),
              UnorderedElementsAre(Pair("a", "newest"), Pair("b", "newest")));
  EXPECT_THAT(
      Reasons(manifests, {.now = kNow, .expire = hours(50), .wanted = {Named("a"), Named("b")}},
              {"a", "b"}),
      UnorderedElementsAre(Pair("a", "wanted"), Pair("b", "wanted")));
  // The newest bundle of the key decides, also for the older one.
  EXPECT_THAT(Reasons({BundleOf("1", hours(100)), BundleOf("2", hours(10))},
                      {.now = kNow, .retain = 2, .expire = hours(50)}, {"1", "2"}),
              UnorderedElementsAre(Pair("1", "newest"), Pair("2", "newest")));
}

TEST(GcPlan, ReferrersGoWithTheirSubject) {
  const std::vector<GcManifest> manifests = {
      BundleOf("old", hours(50)),
      BundleOf("new", hours(40)),
      ReferrerOf("old", "signature of old", hours(0)),
      ReferrerOf("new", "signature of new", hours(90)),
      ReferrerOf("signature of old", "note about the signature", hours(0)),
      ReferrerOf("nothing", "orphan", hours(90)),
      ReferrerOf("nothing", "young orphan", hours(1)),
      ReferrerOf("unlisted", "signature of unlisted", hours(90)),
      Tagged(ReferrerOf("old", "tagged signature", hours(90)), "v1"),
      Tagged(ReferrerOf("old", "signature of cosign 2", hours(90)),
             "sha256-" + Named("old").hex() + ".sig")};
  EXPECT_THAT(
      Reasons(manifests, {.now = kNow, .older_than = hours(24), .wanted = {Named("unlisted")}},
              {"old", "new", "signature of old", "signature of new", "note about the signature",
               "orphan", "young orphan", "signature of unlisted", "tagged signature",
               "signature of cosign 2"}),
      UnorderedElementsAre(Pair("old", "replaced"), Pair("new", "newest"),
                           Pair("signature of old", "referrer of deleted"),
                           Pair("signature of new", "referrer of kept"),
                           Pair("note about the signature", "referrer of deleted"),
                           Pair("orphan", "referrer of deleted"), Pair("young orphan", "too young"),
                           Pair("signature of unlisted", "referrer of kept"),
                           Pair("tagged signature", "tagged"),
                           Pair("signature of cosign 2", "referrer of deleted")));
}

TEST(GcPlan, SubjectsInACircleAreNoSubjects) {
  EXPECT_THAT(
      Reasons({ReferrerOf("b", "a", hours(9)), ReferrerOf("a", "b", hours(9))}, {.now = kNow},
              {"a", "b"}),
      UnorderedElementsAre(Pair("a", "referrer of deleted"), Pair("b", "referrer of deleted")));
}

TEST(GcPlan, OtherArtifactsStay) {
  EXPECT_THAT(
      Reasons({BundleOf("image", hours(900), "")}, {.now = kNow, .expire = hours(1)}, {"image"}),
      ElementsAre(Pair("image", "not a bundle")));
}

// Freed bytes of the deleted items, by repository.
std::map<std::string, std::vector<int64_t>> FreedBytes(std::vector<GcRepository> repositories) {
  std::map<std::string, std::vector<int64_t>> freed;
  for (const GcRepositoryPlan& plan : PlanGc(repositories, {.now = kNow})) {
    for (const GcItem& item : plan.items) {
      if (IsDeletion(item.reason)) {
        freed[plan.name].push_back(item.freed_bytes);
      } else {
        EXPECT_EQ(item.freed_bytes, 0);
      }
      EXPECT_EQ(item.bytes, 210);
    }
  }
  return freed;
}

TEST(GcPlan, ASharedBlobFreesNothing) {
  std::vector<GcManifest> manifests = {BundleOf("1", hours(30)), BundleOf("2", hours(20)),
                                       BundleOf("3", hours(10))};
  EXPECT_THAT(FreedBytes({{.name = "r", .manifests = manifests, .complete = true}}),
              ElementsAre(Pair("r", ElementsAre(210, 210))));
  // The layer that the kept bundle uses frees no bytes; the layer of two deleted bundles counts
  // once.
  manifests[0].blobs[0] = manifests[2].blobs[0];
  manifests[0].blobs[1] = manifests[1].blobs[1];
  EXPECT_THAT(FreedBytes({{.name = "r", .manifests = manifests, .complete = true}}),
              ElementsAre(Pair("r", ElementsAre(210, 10))));
}

TEST(GcPlan, OnlyRegistriesShareBlobsBetweenRepositories) {
  const std::vector<GcManifest> two = {BundleOf("1", hours(30)), BundleOf("2", hours(20))};
  const std::vector<GcManifest> one = {BundleOf("1", hours(30))};
  for (const bool complete : {true, false}) {
    EXPECT_THAT(FreedBytes({{.name = "r", .manifests = two, .complete = complete},
                            {.name = "s", .manifests = one, .complete = complete}}),
                ElementsAre(Pair("r", ElementsAre(complete ? 210 : 10))));
  }
}

TEST(GcPlan, ItemsAreSortedByKeyAndAge) {
  const auto plans =
      PlanGc({{.name = "r",
               .manifests = {ReferrerOf("new", "signature", hours(1)), BundleOf("old", hours(9)),
                             BundleOf("b", hours(1), kKeyB), BundleOf("new", hours(3))}}},
             {.now = kNow});
  std::vector<Digest> order;
  for (const GcItem& item : plans[0].items) {
    order.push_back(item.manifest.stored.digest);
  }
  EXPECT_THAT(order, ElementsAre(Named("new"), Named("old"), Named("b"), Named("signature")));
}

TEST(KeyTagTest, RoundTripsAndRefusesOtherTags) {
  const std::string tag = KeyTagOf(kKeyA);
  const WallTime time{std::chrono::seconds(1'796'000'000)};
  EXPECT_EQ(ParseKeyTag(tag)->key, kKeyA);
  EXPECT_FALSE(ParseKeyTag(tag)->published.has_value());
  const std::string dated = DatedTag(tag, Named("x"), time);
  EXPECT_TRUE(CheckTag(dated).ok()) << dated;
  EXPECT_EQ(ParseKeyTag(dated)->key, kKeyA);
  EXPECT_EQ(ParseKeyTag(dated)->published, time);
  for (const std::string& other :
       {std::string(), std::string("k-1"), std::string("latest"), tag + "-", tag + "x",
        "k-" + std::string(64, 'g'), dated + "0", dated.substr(0, dated.size() - 1),
        tag + "-20261326T000000Z-0123456789ab", tag + "-20261126 000000Z-0123456789ab"}) {
    EXPECT_FALSE(ParseKeyTag(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace cachewarm::bundle
