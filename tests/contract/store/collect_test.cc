// SPDX-License-Identifier: Apache-2.0
// The operations of Store that list and delete, and whole collections, with every implementation.
#include "lib/bundle/gc/collect.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/forwarding_store.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/store/layout/index_file.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/contract/store/store_kinds.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kNoteType[] = "application/vnd.example.note";
const std::string kKeyTag = KeyTagOf(SampleFacts().key);

Digest AttachNote(const RepositoryRef& place, const Digest& subject, const std::string& note) {
  const Artifact artifact{
      .type = kNoteType,
      .config = {.media_type = std::string(kEmptyType),
                 .digest = WriteSmallBlob(place.store, place.repository, kEmptyConfig, {})->digest,
                 .bytes = static_cast<int64_t>(kEmptyConfig.size())},
      .layers = {{.media_type = "text/plain",
                  .digest = WriteSmallBlob(place.store, place.repository, note, {})->digest,
                  .bytes = static_cast<int64_t>(note.size())}},
      .subject = {.media_type = std::string(kManifestType), .digest = subject, .bytes = 1000},
      .annotations = {}};
  const auto written = place.store.WriteReferrer(place.repository, *WriteArtifact(artifact), {});
  EXPECT_TRUE(written.ok()) << written.status();
  return written.value_or(Digest());
}

GcRepositoryPlan PlanOf(const RepositoryRef& place, const GcPolicy& policy) {
  const auto read = ReadGcRepository(place, {});
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? PlanGc({*read}, policy)[0] : GcRepositoryPlan();
}

// Carries out a plan; returns the results by digest.
std::map<Digest, GcResult> CarryOut(Store& store, const GcRepositoryPlan& plan,
                                    const GcPolicy& policy, bool dry_run = false) {
  std::map<Digest, GcResult> results;
  const auto swept =
      CollectRepository(store,
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
  return results;
}

// In an hour everything is old.
GcPolicy InAnHour(GcPolicy policy = {}) {
  policy.now = SystemClock().Now() + std::chrono::hours(1);
  return policy;
}

// Calls `then` after each call of the operation.
class OperationHook : public ForwardingStore {
 public:
  OperationHook(Store& inner, StoreOperation operation, std::function<void()> then)
      : ForwardingStore(inner), operation_(operation), then_(std::move(then)) {}

 private:
  absl::Status Call(StoreOperation operation, const std::stop_token& /*stop*/,
                    Attempt attempt) override {
    absl::Status status = attempt().status();
    if (operation == operation_) {
      then_();
    }
    return status;
  }

  const StoreOperation operation_;
  const std::function<void()> then_;
};

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
    return AttachNote(place(), subject, note);
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
  std::map<Digest, GcResult> Collect(const GcPolicy& policy, bool dry_run = false) {
    const GcPolicy later = InAnHour(policy);
    return CarryOut(store(), PlanOf(place(), later), later, dry_run);
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

TEST_P(CollectContract, SignatureOfABundleThatIsPublishedAgainStays) {
  const Digest old = PublishText("old");
  const Digest note = Attach(old, "note");
  PublishText("new");
  const GcPolicy policy = InAnHour();
  const GcRepositoryPlan plan = PlanOf(place(), policy);
  PublishText("old");
  const auto results = CarryOut(store(), plan, policy);
  EXPECT_EQ(results.at(old), GcResult::kChanged);
  EXPECT_EQ(results.at(note), GcResult::kChanged);
  EXPECT_TRUE(Exists(old));
  EXPECT_TRUE(Exists(note));
  EXPECT_EQ(store().Referrers(kRepository, old, "", {})->size(), 1U);
}

TEST_P(CollectContract, SubjectIsCheckedBeforeItsReferrersAreDeleted) {
  const Digest old = PublishText("old");
  const Digest note = Attach(old, "note");
  PublishText("new");
  const GcPolicy policy = InAnHour();
  const GcRepositoryPlan plan = PlanOf(place(), policy);
  OperationHook hooked(store(), StoreOperation::kListManifests, [&] { PublishText("old"); });
  const auto results = CarryOut(hooked, plan, policy);
  EXPECT_EQ(results.at(old), GcResult::kChanged);
  EXPECT_EQ(results.at(note), GcResult::kChanged);
  EXPECT_TRUE(Exists(note));
}

TEST_P(CollectContract, BundleThatIsTaggedMeanwhileStays) {
  const Digest old = PublishText("old");
  const Digest gone = PublishText("gone");
  PublishText("new");
  const GcPolicy policy = InAnHour();
  const GcRepositoryPlan plan = PlanOf(place(), policy);
  ASSERT_TRUE(store()
                  .WriteManifest(kRepository, *store().ReadManifest(kRepository, old, {}), "v1", {})
                  .ok());
  const auto results = CarryOut(store(), plan, policy);
  EXPECT_EQ(results.at(old), GcResult::kChanged);
  EXPECT_EQ(results.at(gone), GcResult::kDeleted);
  EXPECT_EQ(store().ResolveTag(kRepository, "v1", {}).value_or(Digest()), old);
}

TEST_P(CollectContract, StoppedCollectionDeletesNothing) {
  const Digest old = PublishText("old");
  PublishText("new");
  const GcPolicy policy = InAnHour();
  const GcRepositoryPlan plan = PlanOf(place(), policy);
  std::stop_source stop;
  stop.request_stop();
  const auto swept =
      CollectRepository(store(),
                        {.plan = plan,
                         .policy = policy,
                         .on_item = [](const GcItem&, GcResult, const absl::Status&) { FAIL(); }},
                        stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(swept.status())) << swept.status();
  EXPECT_TRUE(Exists(old));
}

TEST_P(CollectContract, StoppedCollectionReportsWhatItDeleted) {
  PublishText("first");
  PublishText("second");
  PublishText("new");
  const GcPolicy policy = InAnHour();
  const GcRepositoryPlan plan = PlanOf(place(), policy);
  std::stop_source stop;
  OperationHook hooked(store(), StoreOperation::kDeleteManifest, [&] { stop.request_stop(); });
  std::map<Digest, GcResult> results;
  const auto swept = CollectRepository(
      hooked,
      {.plan = plan,
       .policy = policy,
       .on_item = [&](const GcItem& item, GcResult result,
                      const absl::Status&) { results[item.manifest.stored.digest] = result; }},
      stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(swept.status())) << swept.status();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results.begin()->second, GcResult::kDeleted);
  EXPECT_FALSE(Exists(results.begin()->first));
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

TEST(CollectRegistry, CurrentBundleThatIsPublishedAgainIsYoung) {
  if (RegistryProcess::Program().empty()) {
    GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
  }
  http::PrepareProcess();
  fakes::FakeClock clock;
  const RegistryProcess registry;
  const auto store = *OpenStore({.url = "oci://" + registry.address()}, clock);
  const RepositoryRef place{*store, kRepository};
  const auto publish_and_list = [&] {
    EXPECT_TRUE(
        Publish(place, FilesOf({{"a", {.content = "x"}}}), SampleFacts(), {.tag = kKeyTag}, {})
            .ok());
    const auto list = store->ListManifests(kRepository, {});
    EXPECT_TRUE(list.ok() && list->manifests.size() == 1U);
    return list.ok() && !list->manifests.empty() ? list->manifests[0] : StoredManifest();
  };
  const WallTime midnight = clock.Now();
  clock.Advance(std::chrono::minutes(20));
  const StoredManifest first = publish_and_list();
  EXPECT_EQ(first.published, clock.Now());
  const GcPolicy policy{.now = midnight + std::chrono::hours(25), .expire = std::chrono::hours(12)};
  const GcRepositoryPlan plan = PlanOf(place, policy);
  EXPECT_EQ(plan.items[0].reason, GcReason::kExpired);

  clock.Advance(std::chrono::hours(24));
  const StoredManifest second = publish_and_list();
  EXPECT_EQ(second.published, midnight + std::chrono::hours(24)) << "rounded down to the hour";
  EXPECT_EQ(second.tags.size(), first.tags.size() + 1);
  clock.Advance(std::chrono::minutes(30));
  EXPECT_EQ(publish_and_list(), second) << "at most one tag an hour";
  EXPECT_EQ(PlanOf(place, policy).items[0].reason, GcReason::kNewest);
  const absl::Status refused = store->DeleteManifest(kRepository, first, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(CarryOut(*store, plan, policy).at(first.digest), GcResult::kChanged);
}

TEST(CollectLayout, SignatureOfAManifestInAnImageIndexStays) {
  const TempDir temp;
  LayoutStore store(temp / "store", SystemClock());
  const RepositoryRef place{store, kRepository};
  const auto child =
      Publish(place, FilesOf({{"a", {.content = "x"}}}), SampleFacts(), {.tag = kKeyTag}, {});
  ASSERT_TRUE(child.ok()) << child.status();
  const Digest signature = AttachNote(place, child->digest, "signature");
  const Digest orphan = AttachNote(place, DigestOf("nothing"), "orphan");
  const auto index =
      WriteSmallBlob(store, kRepository,
                     fmt::format(R"({{"schemaVersion":2,"mediaType":"{}","manifests":[)"
                                 R"({{"mediaType":"{}","digest":"{}","size":{}}}]}})",
                                 kIndexType, kManifestType, child->digest.ToString(),
                                 store.ReadManifest(kRepository, child->digest, {})->size()),
                     {});
  ASSERT_TRUE(index.ok()) << index.status();
  const fs::Dir dir = *temp.Open().OpenDir(fmt::format("store/{}", kRepository));
  auto items = *ReadIndex(dir);
  std::erase_if(items,
                [&](const IndexItem& item) { return item.manifest.digest == child->digest; });
  items.push_back({.manifest = {.media_type = std::string(kIndexType),
                                .digest = index->digest,
                                .bytes = index->bytes},
                   .tag = "v1"});
  ASSERT_TRUE(ReplaceIndex(dir, items).ok());
  const GcPolicy policy = InAnHour();
  const auto results = CarryOut(store, PlanOf(place, policy), policy);
  EXPECT_EQ(results.at(signature), GcResult::kKept);
  EXPECT_EQ(results.at(orphan), GcResult::kDeleted);
  EXPECT_TRUE(store.ReadManifest(kRepository, child->digest, {}).ok());
}

}  // namespace
}  // namespace cachewarm::bundle
