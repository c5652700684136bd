// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/store.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

Object Pod(const std::string& ns, const std::string& name, const std::string& version = "1",
           const std::string& node = "") {
  return std::make_shared<const Json>(
      Json{{"metadata",
            {{"name", name}, {"namespace", ns}, {"uid", name}, {"resourceVersion", version}}},
           {"spec", {{"nodeName", node}}}});
}

std::vector<std::string> NodeIndex(const Json& object) {
  const std::string node = codec::TextAt(object, {"spec", "nodeName"});
  return node.empty() ? std::vector<std::string>() : std::vector<std::string>{node};
}

std::vector<CachedChange> Replace(Store& store, const std::vector<Object>& objects) {
  std::vector<CachedObjectPtr> kept;
  for (const Object& object : objects) {
    kept.push_back(store.Pack(*object));
  }
  return store.Replace(std::move(kept));
}

TEST(Store, ReturnsStoredObject) {
  Store store;
  const Object pod = Pod("a", "x");
  const CachedChange change = store.Put(*pod);
  EXPECT_EQ(change.before, nullptr);
  EXPECT_EQ(*change.after->Unpack(), *pod);
  EXPECT_EQ(*store.Get({"a", "x"}), *pod);
  EXPECT_EQ(store.Find({"a", "x"}), change.after);
  EXPECT_EQ(store.Get({"a", "y"}), nullptr);
  EXPECT_EQ(store.Find({"", "x"}), nullptr);
}

TEST(Store, FindReadsWithoutUnpacking) {
  Store store;
  Json pod = *Pod("a", "x", "1", "n1");
  pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "llama"}};
  store.Put(pod);
  const CachedObjectPtr kept = store.Find({"a", "x"});
  EXPECT_EQ(kept->name(), (ObjectName{"a", "x"}));
  EXPECT_EQ(kept->uid(), "x");
  EXPECT_EQ(kept->label("app.kubernetes.io/name"), "llama");
  EXPECT_EQ(kept->label("none"), "");
  EXPECT_EQ(kept->value().TextAt({"spec", "nodeName"}), "n1");
}

TEST(Store, ChangeUnpacksBeforeAndAfter) {
  Store store;
  EXPECT_EQ(store.Put(*Pod("a", "x", "1")).Unpack().before, nullptr);
  const Change change = store.Put(*Pod("a", "x", "2")).Unpack();
  EXPECT_EQ(ResourceVersionOf(*change.before), "1");
  EXPECT_EQ(ResourceVersionOf(*change.after), "2");
  EXPECT_EQ(store.Remove({"a", "x"}).Unpack().after, nullptr);
}

TEST(Store, ReplacedObjectStaysValidForReaders) {
  Store store;
  store.Put(*Pod("a", "x", "1"));
  const CachedObjectPtr held = store.Find({"a", "x"});
  const CachedChange change = store.Put(*Pod("a", "x", "2"));
  EXPECT_EQ(ResourceVersionOf(*held->Unpack()), "1");
  EXPECT_EQ(change.before, held);
  store.Remove({"a", "x"});
  EXPECT_EQ(ResourceVersionOf(*held->Unpack()), "1");
}

TEST(Store, ObjectOutlivesItsStore) {
  CachedObjectPtr kept;
  {
    Store store;
    kept = store.Put(*Pod("a", "x")).after;
  }
  EXPECT_EQ(*kept->Unpack(), *Pod("a", "x"));
}

TEST(Store, StoresWithOneTableShareParts) {
  const auto table = codec::PackTable::Make();
  Store pods(nullptr, table);
  Store others(nullptr, table);
  for (int i = 0; i < 10; ++i) {
    pods.Put(*Pod("a", std::to_string(i), "1", "node-of-all"));
  }
  const size_t parts = table->parts();
  EXPECT_GT(parts, 0U);
  others.Put(*Pod("a", "x", "1", "node-of-all"));
  EXPECT_EQ(table->parts(), parts);
}

TEST(Store, ListsByNamespaceAndName) {
  Store store;
  for (const auto& [ns, name] :
       {std::pair("b", "a"), std::pair("a", "z"), std::pair("a", "b"), std::pair("ab", "c")}) {
    store.Put(*Pod(ns, name));
  }
  std::vector<std::string> names;
  for (const CachedObjectPtr& object : store.List()) {
    names.push_back(object->name().ToString());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a/b", "a/z", "ab/c", "b/a"}));
  EXPECT_EQ(store.ListNamespace("a").size(), 2U);
  EXPECT_EQ(store.ListNamespace("").size(), 0U);
  EXPECT_EQ(store.size(), 4U);
}

TEST(Store, ReplaceReportsAddedChangedAndRemoved) {
  Store store;
  Replace(store, {Pod("a", "same"), Pod("a", "changed"), Pod("a", "gone")});
  const auto changes =
      Replace(store, {Pod("a", "same"), Pod("a", "changed", "2"), Pod("a", "new")});
  std::map<std::string, std::string> reported;
  for (const CachedChange& kept : changes) {
    const Change change = kept.Unpack();
    reported[NameOf(change.object()).name] =
        std::string(change.before == nullptr ? "-" : "b") + (change.after == nullptr ? "-" : "a");
  }
  EXPECT_EQ(reported,
            (std::map<std::string, std::string>{{"changed", "ba"}, {"gone", "b-"}, {"new", "-a"}}));
  EXPECT_EQ(store.size(), 3U);
}

TEST(Store, ReplaceKeepsUnchangedObjects) {
  Store store;
  Replace(store, {Pod("a", "same")});
  const CachedObjectPtr before = store.Find({"a", "same"});
  EXPECT_TRUE(Replace(store, {Pod("a", "same")}).empty());
  EXPECT_EQ(store.Find({"a", "same"}), before) << "the decoded object stays valid";
}

TEST(Store, LaterPageWinsForDuplicateObject) {
  Store store(NodeIndex);
  Replace(store, {Pod("a", "x", "1", "n1"), Pod("a", "x", "2", "n2")});
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(ResourceVersionOf(*store.Get({"a", "x"})), "2");
  EXPECT_TRUE(store.ByIndex("n1").empty());
  EXPECT_EQ(store.ByIndex("n2").size(), 1U);
}

TEST(Store, NewUidUnderSameNameIsAChange) {
  Store store;
  Replace(store, {Pod("a", "x", "1")});
  Json other = *Pod("a", "x", "1");
  other["metadata"]["uid"] = "another";
  EXPECT_EQ(Replace(store, {std::make_shared<const Json>(other)}).size(), 1U);
}

TEST(Store, IndexFollowsEveryChange) {
  Store store(NodeIndex);
  store.Put(*Pod("a", "x", "1", "n1"));
  store.Put(*Pod("a", "y", "1", "n1"));
  store.Put(*Pod("a", "unbound"));
  EXPECT_EQ(store.ByIndex("n1").size(), 2U);
  store.Put(*Pod("a", "x", "2", "n2"));
  EXPECT_EQ(store.ByIndex("n1").size(), 1U);
  EXPECT_EQ(store.ByIndex("n2").size(), 1U);
  store.Remove({"a", "y"});
  EXPECT_EQ(store.ByIndex("n1").size(), 0U);
  Replace(store, {Pod("a", "z", "1", "n3")});
  EXPECT_EQ(store.ByIndex("n2").size(), 0U);
  EXPECT_EQ(store.ByIndex("n3").size(), 1U);
  EXPECT_EQ(store.ByIndex("").size(), 0U);
}

TEST(Store, RemovingAbsentObjectChangesNothing) {
  Store store;
  const CachedChange change = store.Remove({"a", "x"});
  EXPECT_EQ(change.before, nullptr);
  EXPECT_EQ(change.after, nullptr);
}

TEST(Store, HasSyncedAfterFirstCompleteList) {
  Store store;
  EXPECT_FALSE(store.HasSynced());
  store.Put(*Pod("a", "x"));
  EXPECT_FALSE(store.HasSynced());
  store.Replace({});
  EXPECT_TRUE(store.HasSynced());
}

TEST(Store, AwaitSyncedEndsOnListDeadlineOrStop) {
  const fakes::FakeClock clock;
  Store store;
  std::stop_source stop;
  stop.request_stop();
  const MonoTime later = clock.Monotonic() + std::chrono::hours(1);
  EXPECT_FALSE(store.AwaitSynced(clock, later, stop.get_token()));
  EXPECT_FALSE(store.AwaitSynced(clock, clock.Monotonic(), {}));
  auto waiting =
      std::async(std::launch::async, [&] { return store.AwaitSynced(clock, later, {}); });
  ASSERT_TRUE(clock.AwaitWaiters(1));
  store.Replace({});
  EXPECT_TRUE(waiting.get());
}

TEST(Store, ReadersNeverSeePartialList) {
  Store store;
  const auto list = [](const std::string& version) {
    std::vector<Object> objects;
    for (int i = 0; i < 50; ++i) {
      objects.push_back(Pod("a", std::to_string(i), version));
    }
    return objects;
  };
  Replace(store, list("0"));
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 1; !stop.stop_requested(); ++i) {
      Replace(store, list(std::to_string(i)));
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::vector<CachedObjectPtr> seen = store.List();
    ASSERT_EQ(seen.size(), 50U);
    for (const CachedObjectPtr& object : seen) {
      ASSERT_EQ(ResourceVersionOf(*object->Unpack()), ResourceVersionOf(*seen[0]->Unpack()));
    }
  }
}

}  // namespace
}  // namespace cachewarm::kube
