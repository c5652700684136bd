// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "tests/contract/kube/backend.h"

namespace cachewarm::kube {
namespace {

using absl::StatusCode;
using codec::Json;

class ObjectsContract : public KubeContract {};
INSTANTIATE_TEST_SUITE_P(Api, ObjectsContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(ObjectsContract, CreateAssignsServerIdentity) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  EXPECT_EQ(UidOf(created).size(), 36U);
  EXPECT_NE(ResourceVersionOf(created), "");
  EXPECT_NE(codec::TextAt(created, {"metadata", "creationTimestamp"}), "");
  EXPECT_EQ(codec::TextAt(created, {"kind"}), "Lease");
  EXPECT_EQ(Do(Get(kLeases, NameOf("a"))), created);
}

TEST_P(ObjectsContract, CreatingTwiceReturnsAlreadyExists) {
  Do(Create(kLeases, Lease("a"), {}));
  const absl::Status status = Fails(Create(kLeases, Lease("a"), {}));
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(HttpCodeOf(status), 409);
  EXPECT_EQ(ReasonOf(status), "AlreadyExists");
}

TEST_P(ObjectsContract, AbsentObjectIsNotFound) {
  for (const Request& request :
       {Get(kLeases, NameOf("a")), Delete(kLeases, NameOf("a"), {}),
        MergePatch(kLeases, NameOf("a"), {{"spec", nullptr}}, {}),
        Apply(kDeployments, {{"metadata", Named("a")}, {"status", Json::object()}},
              {.subresource = "status"})}) {
    const absl::Status status = Fails(request);
    EXPECT_EQ(status.code(), StatusCode::kNotFound) << request.verb << status;
  }
}

TEST_P(ObjectsContract, CreateGeneratesName) {
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    Json lease = Lease("");
    lease["metadata"] = {{"generateName", "made-"}, {"namespace", ns_}};
    names.insert(kube::NameOf(Do(Create(kLeases, lease, {}))).name);
  }
  EXPECT_EQ(names.size(), 3U);
  EXPECT_TRUE(names.begin()->starts_with("made-"));
}

TEST_P(ObjectsContract, MalformedNameIsInvalid) {
  EXPECT_EQ(Fails(Create(kLeases, Lease("Not_A_Name"), {})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Fails(Apply(kLeases, Lease("Not_A_Name"), {})).code(), StatusCode::kInvalidArgument);
}

TEST_P(ObjectsContract, UpdateOfOldVersionConflicts) {
  Json lease = Do(Create(kLeases, Lease("a"), {}));
  lease["spec"]["holderIdentity"] = "second";
  const Json updated = Do(Update(kLeases, lease, {}));
  EXPECT_NE(ResourceVersionOf(updated), ResourceVersionOf(lease));
  lease["spec"]["holderIdentity"] = "third";
  const absl::Status status = Fails(Update(kLeases, lease, {}));
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(status), "Conflict");
  EXPECT_EQ(codec::TextAt(Do(Get(kLeases, NameOf("a"))), {"spec", "holderIdentity"}), "second");
}

TEST_P(ObjectsContract, ADryRunStoresNothing) {
  const Json created = Do(Create(kLeases, Lease("a"), {.dry_run = true}));
  EXPECT_NE(UidOf(created), "");
  EXPECT_EQ(Fails(Get(kLeases, NameOf("a"))).code(), StatusCode::kNotFound);
  Do(Create(kLeases, Lease("a"), {}));
  Do(MergePatch(kLeases, NameOf("a"), {{"spec", {{"holderIdentity", "x"}}}}, {.dry_run = true}));
  Do(Delete(kLeases, NameOf("a"), {.dry_run = true}));
  EXPECT_EQ(codec::TextAt(Do(Get(kLeases, NameOf("a"))), {"spec", "holderIdentity"}), "someone");
}

TEST_P(ObjectsContract, DeleteCanBeBoundToUid) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  const absl::Status wrong =
      Fails(Delete(kLeases, NameOf("a"), {.uid = "11111111-2222-3333-4444-555555555555"}));
  EXPECT_EQ(wrong.code(), StatusCode::kAborted) << wrong;
  EXPECT_EQ(Fails(Delete(kLeases, NameOf("a"), {.resource_version = "1"})).code(),
            StatusCode::kAborted);
  Do(Delete(kLeases, NameOf("a"), {.uid = UidOf(created)}));
  EXPECT_EQ(Fails(Get(kLeases, NameOf("a"))).code(), StatusCode::kNotFound);
}

TEST_P(ObjectsContract, JsonPatchAppliesOnlyIfItsTestPasses) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  const auto patch = [&](const std::string& uid, const std::string& holder) {
    return JsonPatch(
        kLeases, NameOf("a"),
        Json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
                     {{"op", "replace"}, {"path", "/spec/holderIdentity"}, {"value", holder}}}),
        {});
  };
  const absl::Status failed = Fails(patch("another", "x"));
  EXPECT_EQ(failed.code(), StatusCode::kInvalidArgument) << failed;
  EXPECT_EQ(HttpCodeOf(failed), 422);
  EXPECT_EQ(codec::TextAt(Do(patch(UidOf(created), "y")), {"spec", "holderIdentity"}), "y");
}

TEST_P(ObjectsContract, MergePatchSetsAndRemovesFields) {
  Json lease = Lease("a");
  lease["metadata"]["annotations"] = {{"keep", "1"}, {"drop", "2"}};
  Do(Create(kLeases, lease, {}));
  const Json patched =
      Do(MergePatch(kLeases, NameOf("a"),
                    {{"metadata", {{"annotations", {{"drop", nullptr}, {"new", "3"}}}}}}, {}));
  EXPECT_EQ(AnnotationsOf(patched),
            (std::map<std::string, std::string>{{"keep", "1"}, {"new", "3"}}));
}

TEST_P(ObjectsContract, MergePatchCanBeBoundToVersion) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  const Json bound = {{"metadata", {{"resourceVersion", ResourceVersionOf(created)}}},
                      {"spec", {{"holderIdentity", "x"}}}};
  Do(MergePatch(kLeases, NameOf("a"), bound, {}));
  EXPECT_EQ(Fails(MergePatch(kLeases, NameOf("a"), bound, {})).code(), StatusCode::kAborted);
}

TEST_P(ObjectsContract, SpecAndStatusAreWrittenSeparately) {
  Json wanted = Deployment("a");
  wanted["status"] = {{"replicas", 7}, {"observedGeneration", 9}};
  const Json created = Do(Create(kDeployments, wanted, {}));
  EXPECT_NE(created.value("status", Json::object()).value("replicas", 0), 7)
      << "create ignores status";
  EXPECT_EQ(created["metadata"]["generation"], 1);
  const Json status = Do(MergePatch(
      kDeployments, NameOf("a"),
      {{"status", {{"conditions", Json::array({{{"type", "Tested"}, {"status", "True"}}})}}},
       {"spec", {{"replicas", 3}}}},
      {.subresource = "status"}));
  EXPECT_EQ(status["spec"]["replicas"], 0) << "a status write keeps the spec";
  EXPECT_EQ(status["status"]["conditions"][0]["type"], "Tested");
  EXPECT_EQ(status["metadata"]["generation"], 1);
  const Json spec = Do(MergePatch(kDeployments, NameOf("a"),
                                  {{"spec", {{"minReadySeconds", 3}}}, {"status", nullptr}}, {}));
  EXPECT_EQ(spec["status"]["conditions"][0]["type"], "Tested") << "a spec write keeps the status";
  EXPECT_EQ(spec["metadata"]["generation"], 2);
}

TEST_P(ObjectsContract, PatchCannotRemoveIdentity) {
  const Json created = Do(Create(kLeases, Lease("a"), {}));
  const auto changed =
      client().Do(MergePatch(kLeases, NameOf("a"), {{"metadata", {{"uid", "another"}}}}, {}), {});
  EXPECT_FALSE(changed.ok());
  EXPECT_EQ(UidOf(Do(Get(kLeases, NameOf("a")))), UidOf(created));
}

TEST_P(ObjectsContract, ListIsPagedUntilTokenIsEmpty) {
  for (int i = 0; i < 5; ++i) {
    Do(Create(kLeases, Lease(fmt::format("lease-{}", i)), {}));
  }
  std::vector<std::string> names;
  std::string token;
  int pages = 0;
  do {
    const Json page = Do(List(kLeases, {.ns = ns_, .limit = 2, .continue_token = token}));
    for (const Json& item : page["items"]) {
      names.push_back(kube::NameOf(item).name);
    }
    token = codec::TextAt(page, {"metadata", "continue"});
    EXPECT_NE(codec::TextAt(page, {"metadata", "resourceVersion"}), "");
    ++pages;
  } while (!token.empty() && pages < 10);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(names,
            (std::vector<std::string>{"lease-0", "lease-1", "lease-2", "lease-3", "lease-4"}));
}

TEST_P(ObjectsContract, ListFiltersByLabelsAndFields) {
  for (const auto& [name, app] : {std::pair("a", "x"), std::pair("b", "y"), std::pair("c", "")}) {
    Json lease = Lease(name);
    if (*app != '\0') {
      lease["metadata"]["labels"] = {{"app", app}};
    }
    Do(Create(kLeases, lease, {}));
  }
  const auto select = [&](const std::string& labels, const std::string& fields = "") {
    std::string names;
    const Json listed =
        Do(List(kLeases, {.ns = ns_, .label_selector = labels, .field_selector = fields}));
    for (const Json& item : listed["items"]) {
      names += kube::NameOf(item).name;
    }
    return names;
  };
  EXPECT_EQ(select(""), "abc");
  EXPECT_EQ(select("app"), "ab");
  EXPECT_EQ(select("!app"), "c");
  EXPECT_EQ(select("app=x"), "a");
  EXPECT_EQ(select("app==y"), "b");
  EXPECT_EQ(select("app!=x"), "bc");
  EXPECT_EQ(select("app in (x,y)"), "ab");
  EXPECT_EQ(select("app notin (x)"), "bc");
  EXPECT_EQ(select("app,app!=y"), "a");
  EXPECT_EQ(select("", "metadata.name=b"), "b");
  EXPECT_EQ(select("", "metadata.name!=b"), "ac");
  EXPECT_EQ(Fails(List(kLeases, {.ns = ns_, .field_selector = "spec.none=1"})).code(),
            StatusCode::kInvalidArgument);
}

TEST_P(ObjectsContract, ListFiltersEventsByReason) {
  for (const std::string reason : {"FailedMount", "Pulled"}) {
    Do(Create(kEvents,
              {{"apiVersion", "events.k8s.io/v1"},
               {"kind", "Event"},
               {"metadata", {{"name", reason == "Pulled" ? "b" : "a"}, {"namespace", ns_}}},
               {"type", "Normal"},
               {"reason", reason},
               {"action", "Test"},
               {"note", "words"},
               {"eventTime", "2026-01-01T00:00:00.000000Z"},
               {"reportingController", "cachewarm.io/test"},
               {"reportingInstance", "test"},
               {"regarding", {{"kind", "Pod"}, {"namespace", ns_}, {"name", "p"}, {"uid", "u"}}}},
              {}));
  }
  const Json listed = Do(List(kEvents, {.ns = ns_, .field_selector = "reason=FailedMount"}));
  ASSERT_EQ(listed["items"].size(), 1U);
  EXPECT_EQ(listed["items"][0]["note"], "words");
  EXPECT_EQ(listed["items"][0]["regarding"]["uid"], "u");
}

TEST_P(ObjectsContract, UnservedResourceIsNotFound) {
  constexpr Resource kNone{"none.example", "v1", "nones", "None"};
  EXPECT_EQ(Fails(List(kNone, {.ns = ns_})).code(), StatusCode::kNotFound);
}

TEST_P(ObjectsContract, VersionPathReturnsServerVersion) {
  if (is_fake()) {
    return;  // the fake has no version
  }
  EXPECT_TRUE(codec::TextAt(Do(GetPath("/version")), {"gitVersion"}).starts_with("v1."));
}

}  // namespace
}  // namespace cachewarm::kube
