// SPDX-License-Identifier: Apache-2.0
// The operations of Store that list and delete, and whole collections, with every implementation.
#include "lib/bundle/gc/collect.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/contract/store/store_kinds.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kNoteType[] = "application/vnd.example.note";
const std::string kKeyTag = KeyTagOf(SampleFacts().key);

class CollectContract : public ::testing::TestWithParam<StoreKind> {
 protected:
  static void SetUpTestSuite() { http::PrepareProcess(); }

  void SetUp() override {
    if (GetParam().needs_registry && RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    under_test_ = GetParam().make();
  }

  Store& store() { return *under_test_.store; }
  RepositoryRef place(const std::string& repository = kRepository) { return {store(), repository}; }

  Digest PublishText(const std::string& content, const std::string& tag = kKeyTag) {
    const auto published =
        Publish(place(), FilesOf({{"a", {.content = content}}}), SampleFacts(), {.tag = tag}, {});
    EXPECT_TRUE(published.ok()) << published.status();
    return published.ok() ? published->digest : Digest();
  }

  Digest Attach(const Digest& subject, const std::string& note) {
    const Artifact artifact{
        .type = kNoteType,
        .config = {.media_type = std::string(kEmptyType),
                   .digest = WriteSmallBlob(store(), kRepository, kEmptyConfig, {})->digest,
                   .bytes = static_cast<int64_t>(kEmptyConfig.size())},
        .layers = {{.media_type = "text/plain",
                    .digest = WriteSmallBlob(store(), kRepository, note, {})->digest,
                    .bytes = static_cast<int64_t>(note.size())}},
        .subject = {.media_type = std::string(kManifestType), .digest = subject, .bytes = 1000},
        .annotations = {}};
    const auto written = store().WriteReferrer(kRepository, *WriteArtifact(artifact), {});
    EXPECT_TRUE(written.ok()) << written.status();
    return written.value_or(Digest());
  }

  std::map<Digest, StoredManifest> List() {
    const auto list = store().ListManifests(kRepository, {});
    EXPECT_TRUE(list.ok()) << list.status();
    std::map<Digest, StoredManifest> found;
    for (const StoredManifest& each : list.ok() ? list->manifests : std::vector<StoredManifest>()) {
      found[each.digest] = each;
    }
    return found;
  }

  bool Exists(const Digest& digest) {
    const auto text = store().ReadManifest(kRepository, digest, {});
    EXPECT_TRUE(text.ok() || absl::IsNotFound(text.status())) << text.status();
    return text.ok();
  }

  // Collects the repository; returns the results by digest.
  std::map<Digest, GcResult> Collect(GcPolicy policy, bool dry_run = false) {
    policy.now = SystemClock().Now() + std::chrono::hours(1);
    std::map<Digest, GcResult> results;
    const auto read = ReadGcRepository(place(), {});
    EXPECT_TRUE(read.ok()) << read.status();
    for (const GcRepositoryPlan& plan : PlanGc({*read}, policy)) {
      const auto swept = CollectRepository(
          store(),
          {.plan = plan,
           .policy = policy,
           .dry_run = dry_run,
           .on_item =
               [&](const GcItem& item, GcResult result, const absl::Status& status) {
                 EXPECT_TRUE(status.ok()) << status;
                 results[item.manifest.stored.digest] = result;
               }},
          {});
      EXPECT_TRUE(swept.ok()) << swept.status();
    }
    return results;
  }

 private:
  StoreUnderTest under_test_;
};

TEST_P(CollectContract, RepositoriesAreListed) {
  EXPECT_THAT(*store().ListRepositories({}), IsEmpty());
  PublishText("x");
  ASSERT_TRUE(Publish(place("team/nested/qwen"), FilesOf({{"a", {.content = "x"}}}), SampleFacts(),
                      {.tag = kKeyTag}, {})
                  .ok());
  const auto listed = store().ListRepositories({});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(*listed, ElementsAre(kRepository, "team/nested/qwen"));
}

TEST_P(CollectContract, ManifestsAreListedWithTagsAndTime) {
  const auto nothing = store().ListManifests("team/nothing", {});
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_THAT(nothing->manifests, IsEmpty());
  const WallTime begin = SystemClock().Now() - std::chrono::seconds(2);
  const Digest old = PublishText("old");
  const Digest current = PublishText("current");
  ASSERT_TRUE(
      store()
          .WriteManifest(kRepository, *store().ReadManifest(kRepository, current, {}), "v1", {})
          .ok());
  const Digest other = PublishText("other", "v2");
  const auto found = List();
  ASSERT_TRUE(found.contains(old)) << "also after the tag of its key has moved on";
  ASSERT_TRUE(found.contains(current));
  ASSERT_TRUE(found.contains(other));
  EXPECT_THAT(found.at(old).tags, Not(Contains(kKeyTag)));
  EXPECT_THAT(found.at(current).tags, Contains(kKeyTag));
  EXPECT_THAT(found.at(current).tags, Contains("v1"));
  EXPECT_THAT(found.at(other).tags, ElementsAre("v2"));
  for (const Digest& digest : {old, current}) {
    ASSERT_TRUE(found.at(digest).published.has_value());
    EXPECT_GE(*found.at(digest).published, begin);
  }
}

TEST_P(CollectContract, DeletedManifestHasNoTagAndIsNotRead) {
  const Digest gone = PublishText("gone");
  const Digest stays = PublishText("stays", "v1");
  const StoredManifest listed = List().at(gone);
  EXPECT_TRUE(store().DeleteManifest(kRepository, listed, {}).ok());
  EXPECT_FALSE(Exists(gone));
  EXPECT_TRUE(absl::IsNotFound(store().ResolveTag(kRepository, kKeyTag, {}).status()));
  EXPECT_FALSE(List().contains(gone));
  EXPECT_TRUE(store().DeleteManifest(kRepository, listed, {}).ok()) << "a second time";
  EXPECT_TRUE(Verify(place(), *ReadBundle(place(), stays, {}), {}, {}).ok());
  EXPECT_EQ(PublishText("gone"), gone);
  EXPECT_TRUE(Verify(place(), *ReadBundle(place(), gone, {}), {}, {}).ok());
}

TEST_P(CollectContract, ManifestThatWasPublishedAgainIsNotDeleted) {
  const Digest old = PublishText("old");
  PublishText("new");
  const StoredManifest listed = List().at(old);
  PublishText("old");
  const absl::Status refused = store().DeleteManifest(kRepository, listed, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(store().ResolveTag(kRepository, kKeyTag, {}).value_or(Digest()), old);
  EXPECT_TRUE(Verify(place(), *ReadBundle(place(), old, {}), {}, {}).ok());
}

TEST_P(CollectContract, ReferrersOfEveryTypeAreListed) {
  const Digest subject = PublishText("signed");
  const Digest note = Attach(subject, "note");
  const auto found = store().Referrers(kRepository, subject, "", {});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].digest, note);
}

TEST_P(CollectContract, CollectionKeepsTheNewestAndItsReferrers) {
  std::vector<Digest> bundles;
  std::vector<Digest> notes;
  for (const std::string name : {"first", "second", "third"}) {
    bundles.push_back(PublishText(name));
    notes.push_back(Attach(bundles.back(), "note about " + name));
  }
  const Digest tagged = PublishText("tagged", "v1");
  const auto planned = Collect({.retain = 1, .wanted = {bundles[0]}}, true);
  EXPECT_EQ(planned.at(bundles[1]), GcResult::kWouldDelete);
  EXPECT_TRUE(Exists(bundles[1])) << "after a dry run";

  const auto results = Collect({.retain = 1, .wanted = {bundles[0]}});
  EXPECT_EQ(results.at(bundles[0]), GcResult::kKept) << "wanted";
  EXPECT_EQ(results.at(bundles[1]), GcResult::kDeleted);
  EXPECT_EQ(results.at(notes[1]), GcResult::kDeleted);
  EXPECT_EQ(results.at(bundles[2]), GcResult::kKept) << "newest";
  EXPECT_FALSE(Exists(bundles[1]));
  EXPECT_FALSE(Exists(notes[1]));
  EXPECT_THAT(*store().Referrers(kRepository, bundles[1], "", {}), IsEmpty());
  for (const Digest& kept : {bundles[0], bundles[2], tagged}) {
    EXPECT_TRUE(Verify(place(), *ReadBundle(place(), kept, {}), {}, {}).ok());
  }
  for (const Digest& kept : {notes[0], notes[2]}) {
    EXPECT_TRUE(Exists(kept));
  }
  EXPECT_EQ(store().ResolveTag(kRepository, kKeyTag, {}).value_or(Digest()), bundles[2]);
  // Nothing is left to delete.
  for (const auto& [digest, result] : Collect({.retain = 1, .wanted = {bundles[0]}})) {
    EXPECT_EQ(result, GcResult::kKept);
  }
}

TEST_P(CollectContract, BundlesAreKeptWhileTheyAreYoung) {
  const Digest old = PublishText("old");
  PublishText("new");
  EXPECT_EQ(Collect({.older_than = std::chrono::hours(2)}).at(old), GcResult::kKept);
  EXPECT_EQ(Collect({.older_than = std::chrono::minutes(1)}).at(old), GcResult::kDeleted);
}

INSTANTIATE_TEST_SUITE_P(Stores, CollectContract, ::testing::ValuesIn(AllKinds()),
                         [](const ::testing::TestParamInfo<StoreKind>& kind) {
                           return kind.param.name;
                         });

TEST(CollectRegistry, RegistryThatForbidsDeletionIsReported) {
  if (RegistryProcess::Program().empty()) {
    GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
  }
  http::PrepareProcess();
  const RegistryProcess registry({.allows_deletion = false});
  const auto store = *OpenStore({.url = "oci://" + registry.address()}, SystemClock());
  const RepositoryRef place{*store, kRepository};
  for (const std::string content : {"old", "new"}) {
    ASSERT_TRUE(
        Publish(place, FilesOf({{"a", {.content = content}}}), SampleFacts(), {.tag = kKeyTag}, {})
            .ok());
  }
  const GcPolicy policy{.now = SystemClock().Now() + std::chrono::hours(1)};
  const auto plans = PlanGc({*ReadGcRepository(place, {})}, policy);
  const auto swept =
      CollectRepository(*store,
                        {.plan = plans[0],
                         .policy = policy,
                         .on_item = [](const GcItem&, GcResult, const absl::Status&) { FAIL(); }},
                        {});
  EXPECT_TRUE(absl::IsUnimplemented(swept.status())) << swept.status();
}

}  // namespace
}  // namespace cachewarm::bundle
