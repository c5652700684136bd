// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/request.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

const Json kPod = {{"metadata", {{"name", "a"}, {"namespace", "team"}}}, {"spec", {{"x", 1}}}};

TEST(Request, ListAddressesTheCollection) {
  const Request request = List(kPods, {.ns = "team",
                                       .label_selector = "app in (a,b),!c",
                                       .field_selector = "spec.nodeName=n",
                                       .limit = 2,
                                       .resource_version = "0"});
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.verb, "list");
  EXPECT_EQ(request.resource, "pods");
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods");
  EXPECT_EQ(request.query,
            "labelSelector=app%20in%20%28a%2Cb%29%2C%21c&fieldSelector=spec.nodeName%3Dn&limit=2&"
            "resourceVersion=0");
  EXPECT_TRUE(request.idempotent);
}

TEST(Request, ContinueTokenReplacesVersion) {
  const Request request = List(kPods, {.continue_token = "a=b/c", .resource_version = "7"});
  EXPECT_EQ(request.query, "limit=500&continue=a%3Db%2Fc");
}

TEST(Request, UnlimitedListSendsNoLimit) {
  EXPECT_EQ(List(kPods, {.limit = 0}).query, "");
}

TEST(Request, PathsFollowGroupAndScope) {
  EXPECT_EQ(List(kPods, {}).path, "/api/v1/pods");
  EXPECT_EQ(List(kNodes, {.ns = "ignored"}).path, "/api/v1/nodes");
  EXPECT_EQ(Get(kNodeCaches, {.ns = "", .name = "n.example"}).path,
            "/apis/cachewarm.io/v1alpha1/nodecaches/n.example");
  EXPECT_EQ(Get(kDeployments, {.ns = "a", .name = "b"}).path,
            "/apis/apps/v1/namespaces/a/deployments/b");
  EXPECT_EQ(Get(kNamespaces, {.ns = "", .name = "a"}).path, "/api/v1/namespaces/a");
}

TEST(Request, NamesCannotLeaveTheirSegment) {
  EXPECT_EQ(Get(kPods, {.ns = "a/../b", .name = "c?d#e"}).path,
            "/api/v1/namespaces/a%2F..%2Fb/pods/c%3Fd%23e");
}

TEST(Request, WatchRequestsBookmarksAndTimeout) {
  const Request request =
      Watch(kCacheWarmups, {.ns = "team", .resource_version = "12", .timeout_seconds = 30});
  EXPECT_EQ(request.path, "/apis/cachewarm.io/v1alpha1/namespaces/team/cachewarmups");
  EXPECT_EQ(request.query,
            "watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=30");
}

TEST(Request, CreatePostsIntoTheNamespaceOfTheObject) {
  const Request request = Create(kPods, kPod, {.field_manager = "me", .dry_run = true});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods");
  EXPECT_EQ(request.query, "fieldManager=me&dryRun=All");
  EXPECT_EQ(request.content_type, "application/json");
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["apiVersion"], "v1");
  EXPECT_EQ(body["kind"], "Pod");
  EXPECT_EQ(body["spec"]["x"], 1);
}

TEST(Request, OnlyGenerateNameCreateIsNotIdempotent) {
  const Json nameless = {{"metadata", {{"generateName", "a-"}, {"namespace", "team"}}}};
  EXPECT_FALSE(Create(kPods, nameless, {}).idempotent);
  EXPECT_TRUE(Create(kPods, nameless, {.dry_run = true}).idempotent);
  EXPECT_TRUE(Create(kPods, kPod, {}).idempotent);
}

TEST(Request, UpdatePutsTheObjectItself) {
  const Request request = Update(kPods, kPod, {.subresource = "status"});
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods/a/status");
  EXPECT_EQ(request.resource, "pods/status");
}

TEST(Request, ApplyIsAForcedServerSideApply) {
  const Request request = Apply(kNodeCaches, {{"metadata", {{"name", "n"}}}},
                                {.field_manager = "cw-1", .subresource = "status"});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.verb, "apply");
  EXPECT_EQ(request.path, "/apis/cachewarm.io/v1alpha1/nodecaches/n/status");
  EXPECT_EQ(request.query, "fieldManager=cw-1&force=true");
  EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(Json::parse(request.body)["kind"], "NodeCache");
  EXPECT_TRUE(request.idempotent);
}

TEST(Request, PatchesSetContentType) {
  const Json operations = Json::array({{{"op", "remove"}, {"path", "/a"}}});
  const Request json = JsonPatch(kPods, {.ns = "a", .name = "b"}, operations, {});
  EXPECT_EQ(json.content_type, "application/json-patch+json");
  EXPECT_EQ(json.query, "fieldManager=cachewarm");
  EXPECT_EQ(Json::parse(json.body), operations);
  EXPECT_FALSE(json.idempotent);
  const Request merge = MergePatch(kPods, {.ns = "a", .name = "b"}, {{"status", nullptr}}, {});
  EXPECT_EQ(merge.content_type, "application/merge-patch+json");
  EXPECT_EQ(merge.body, R"({"status":null})");
}

TEST(Request, DeleteSendsPreconditionsAndPropagation) {
  const Request request = Delete(kJobs, {.ns = "a", .name = "b"},
                                 {.uid = "u", .resource_version = "3", .grace_seconds = 0});
  EXPECT_EQ(request.method, "DELETE");
  EXPECT_EQ(request.path, "/apis/batch/v1/namespaces/a/jobs/b");
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["preconditions"], (Json{{"uid", "u"}, {"resourceVersion", "3"}}));
  EXPECT_EQ(body["propagationPolicy"], "Background");
  EXPECT_EQ(body["gracePeriodSeconds"], 0);
  const Json plain = Json::parse(Delete(kJobs, {.ns = "a", .name = "b"}, {}).body);
  EXPECT_FALSE(plain.contains("preconditions"));
  EXPECT_FALSE(plain.contains("gracePeriodSeconds"));
}

TEST(Request, PodLogNamesContainerAndLimit) {
  const Request request =
      PodLog({.ns = "a", .name = "b"}, {.container = "c d", .limit_bytes = 2'097'152});
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.resource, "pods/log");
  EXPECT_EQ(request.path, "/api/v1/namespaces/a/pods/b/log");
  EXPECT_EQ(request.query, "container=c%20d&limitBytes=2097152");
  EXPECT_FALSE(request.idempotent);
  EXPECT_EQ(request.response_bytes_max, 2'097'152U);
}

TEST(Request, ReplacesInvalidUtf8InBody) {
  const Request request = Create(kPods, {{"metadata", {{"name", "a"}}}, {"x", "\xff\xfe"}}, {});
  EXPECT_TRUE(Json::accept(request.body));
}

}  // namespace
}  // namespace cachewarm::kube
