// SPDX-License-Identifier: Apache-2.0
// Tests every option of "cachewarm gc", from the command line to the bundles of a store.
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>

#include "gmock/gmock.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "lib/kube/core/resource.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/kube_front.h"
#include "tests/unit/cli/program_fixture.h"
#include "tests/unit/cli/small_registry.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

const std::string kKeyA(64, 'a');
const std::string kKeyB(64, 'b');

class GcFlags : public ProgramFixture {
 protected:
  GcFlags() {
    http::PrepareProcess();
    temp_.Write("config", front_.Kubeconfig());
  }

  std::string store_url() const { return fmt::format("layout://{}/bundles", temp_.path()); }

  // Publishes a bundle of the key, `days` days ago. Publish the oldest first.
  Digest Publish(const std::string& repository, int days, const std::string& key = kKeyA) {
    bundle::LayoutStore store(temp_ / "bundles", SystemClock());
    bundle::Facts facts = bundle::SampleFacts();
    facts.key = key;
    const auto published = bundle::Publish(
        {store, repository},
        bundle::FilesOf({{"a", {.content = fmt::format("{} {} {}", repository, days, key)}}}),
        facts, {.tag = bundle::KeyTagOf(key)}, {});
    EXPECT_TRUE(published.ok()) << published.status();
    const auto found = bundle::ReadBundle({store, repository}, published->digest, {});
    MakeOld(repository, published->digest, days);
    MakeOld(repository, found->manifest.config.digest, days);
    MakeOld(repository, found->manifest.layers[0].digest, days);
    return published->digest;
  }

  void MakeOld(const std::string& repository, const Digest& digest, int days) {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::seconds>(
        SystemClock().Now().time_since_epoch() - std::chrono::hours(24 * days));
    const timespec time{.tv_sec = since_epoch.count(), .tv_nsec = 0};
    const timespec times[] = {time, time};
    const std::string path =
        temp_ / fmt::format("bundles/{}/blobs/sha256/{}", repository, digest.hex());
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  }

  Outcome Gc(Words words) {
    words.insert(words.begin(), {"gc", "--store", store_url()});
    return Run(words);
  }

  // The bundles of all repositories that can be read.
  std::vector<Digest> Left() {
    bundle::LayoutStore store(temp_ / "bundles", SystemClock());
    std::vector<Digest> left;
    const auto repositories = store.ListRepositories({});
    for (const std::string& repository : repositories.value_or(std::vector<std::string>())) {
      const auto list = store.ListManifests(repository, {});
      for (const bundle::StoredManifest& each : list->manifests) {
        EXPECT_TRUE(store.ReadManifest(repository, each.digest, {}).ok());
        left.push_back(each.digest);
      }
    }
    return left;
  }

  void PutNode(const std::string& key, const Digest& digest) {
    api::NodeCacheSpec spec;
    spec.warmups = {{.uid = "w1",
                     .ns = "team",
                     .name = "llama",
                     .run_as = {"image"},
                     .bundles = {{.key = key, .digest = digest, .bytes = 1}}}};
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", "n1"}, {"uid", "n1"}}},
                                    {"spec", api::EncodeSpec(spec)}});
  }

  void PutWarmup(const std::string& key, const Digest& digest) {
    api::WarmupSpec spec;
    spec.selector = {{"app", "llama"}};
    api::WarmupStatus status;
    status.bundles = {{.key = key,
                       .gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
                       .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
                       .image = "llama:1",
                       .digest = digest}};
    server_.Put(kube::kCacheWarmups,
                {{"apiVersion", "cachewarm.io/v1alpha1"},
                 {"kind", "CacheWarmup"},
                 {"metadata", {{"namespace", "team"}, {"name", "llama"}, {"uid", "w1"}}},
                 {"spec", api::EncodeSpec(spec)},
                 {"status", api::EncodeStatus(status)}});
  }

  fakes::FakeApiServer server_{SystemClock()};
  fakes::KubeFront front_{server_};
};

TEST_F(GcFlags, RetainIsTheNumberOfBundlesPerKey) {
  const Digest first = Publish("team/llama", 9);
  const Digest second = Publish("team/llama", 8);
  const Digest third = Publish("team/llama", 7);
  const Digest other = Publish("team/llama", 9, kKeyB);
  EXPECT_EQ(Gc({"--retain", "2"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(second, third, other)) << first.Short();
  const Outcome outcome = Gc({});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(Left(), UnorderedElementsAre(third, other));
  EXPECT_THAT(outcome.out, ContainsRegex("RESULT +REASON +AGE +SIZE +FREED +KEY +BUNDLE\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("deleted +replaced +8d.* +[0-9.]+ k?B +[0-9.]+ k?B "
                                         "+aaaaaaaaaaaa +team/llama@" +
                                         second.ToString()));
  EXPECT_THAT(outcome.out,
              ContainsRegex("kept +newest +7d.* - +aaaaaaaaaaaa +team/llama@" + third.ToString()));
  EXPECT_THAT(outcome.err, ContainsRegex("deleted 1 manifests, kept 2; freed .* in 2 blobs"));
}

TEST_F(GcFlags, DryRunPrintsTheSameReportAndDeletesNothing) {
  const Digest first = Publish("team/llama", 9);
  const Digest second = Publish("team/llama", 8);
  const Outcome dry = Gc({"--dry-run"});
  EXPECT_EQ(dry.code, kOk) << dry.err;
  EXPECT_THAT(dry.out, ContainsRegex("would delete +replaced .*" + first.ToString()));
  // The manifest, the config and the layer.
  EXPECT_THAT(dry.err, ContainsRegex("would delete 1 manifests, kept 1; would free .* in 3 blobs"));
  EXPECT_THAT(Left(), UnorderedElementsAre(first, second));
}

TEST_F(GcFlags, OlderThanProtectsYoungBundles) {
  const Digest first = Publish("team/llama", 9);
  const Digest second = Publish("team/llama", 4);
  EXPECT_EQ(Gc({"--older-than", "5d"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(first, second)) << "replaced 4 days ago";
  EXPECT_EQ(Gc({"--older-than=72h"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(second));
}

TEST_F(GcFlags, ExpireDeletesKeysThatAreNotUsed) {
  const Digest a = Publish("team/llama", 40);
  const Digest b = Publish("team/llama", 20, kKeyB);
  EXPECT_EQ(Gc({}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(a, b));
  const Outcome outcome = Gc({"--expire", "30d"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("deleted +expired"));
  EXPECT_THAT(Left(), UnorderedElementsAre(b));
}

TEST_F(GcFlags, RepositorySelectsWhatIsCollected) {
  const Digest old_llama = Publish("team/llama", 9);
  const Digest llama = Publish("team/llama", 8);
  Publish("team/qwen", 9);
  const Digest qwen = Publish("team/qwen", 8);
  EXPECT_EQ(Gc({"--repository", "team/qwen"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(old_llama, llama, qwen));
  EXPECT_EQ(Gc({"--repository", "team/none", "--repository", "team/llama"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(llama, qwen));
}

TEST_F(GcFlags, KeepUsedKeepsWhatNodesAndWarmupsNeed) {
  const Digest on_node = Publish("team/llama", 9);
  const Digest unneeded = Publish("team/llama", 8);
  const Digest newest = Publish("team/llama", 7);
  const Digest recorded = Publish("team/qwen", 90, kKeyB);
  PutNode(kKeyA, on_node);
  PutWarmup(kKeyB, recorded);
  environment_["KUBECONFIG"] = temp_ / "config";
  const Outcome outcome = Gc({"--keep-used", "--expire", "1d"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("kept +wanted .*" + on_node.ToString()));
  EXPECT_THAT(Left(), UnorderedElementsAre(on_node, newest, recorded)) << unneeded.Short();
  // Without --keep-used, the decision does not depend on the cluster.
  EXPECT_EQ(Gc({"--expire", "1d"}).code, kOk);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(GcFlags, NothingIsDeletedWhileTheClusterIsUnknown) {
  const Digest first = Publish("team/llama", 9);
  const Digest second = Publish("team/llama", 8);
  const Words cluster = {"--keep-used", "--kubeconfig", temp_ / "config"};
  server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                  {"kind", "NodeCache"},
                                  {"metadata", {{"name", "n1"}, {"uid", "n1"}}},
                                  {"spec", {{"warmups", 7}}}});
  const Outcome undecodable = Gc(cluster);
  EXPECT_EQ(undecodable.code, kFailed);
  EXPECT_THAT(undecodable.err, HasSubstr("nodecaches: "));
  server_.Intercept(
      [](const kube::Request&) { return absl::PermissionDeniedError("you may not list"); });
  const Outcome denied = Gc(cluster);
  EXPECT_EQ(denied.code, kFailed);
  EXPECT_THAT(denied.err, HasSubstr("cachewarmups: "));
  EXPECT_THAT(Left(), UnorderedElementsAre(first, second));
}

TEST_F(GcFlags, OptionsOfTheClusterSelectIt) {
  const Digest wanted = Publish("team/llama", 9);
  const Digest newest = Publish("team/llama", 8);
  PutNode(kKeyA, wanted);
  EXPECT_EQ(Gc({"--keep-used", "--kubeconfig", temp_ / "config"}).code, kOk);
  EXPECT_THAT(Left(), UnorderedElementsAre(wanted, newest));
  for (const char* flag : {"--context", "--cluster", "--user"}) {
    const Outcome outcome = Gc({"--keep-used", "--kubeconfig", temp_ / "config", flag, "absent"});
    EXPECT_NE(outcome.code, kOk) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("absent")) << flag;
  }
  for (const char* flag : {"--kubeconfig", "--context", "--cluster", "--user", "--as"}) {
    EXPECT_THAT(Gc({flag, "x"}).err, HasSubstr("only with --keep-used")) << flag;
  }
}

TEST_F(GcFlags, ImpersonatesAUser) {
  Words words = {"--keep-used", "--kubeconfig", temp_ / "config", "--as-group", "auditors"};
  EXPECT_NE(Gc(words).code, kOk) << "a group needs a user";
  words.insert(words.end(), {"--as", "ann"});
  EXPECT_EQ(Gc(words).code, kOk);
}

TEST_F(GcFlags, JsonReplacesTheTable) {
  const Digest first = Publish("team/llama", 9);
  const Digest second = Publish("team/llama", 8);
  const Outcome outcome = Gc({"--json"});
  EXPECT_EQ(outcome.err, "");
  const Json json = Parsed(outcome);
  EXPECT_EQ(json["dryRun"], false);
  ASSERT_EQ(json["manifests"].size(), 2U);
  EXPECT_EQ(json["manifests"][0]["digest"], second.ToString());
  EXPECT_EQ(json["manifests"][0]["result"], "kept");
  EXPECT_EQ(json["manifests"][0]["reason"], "newest");
  EXPECT_EQ(json["manifests"][0]["tags"], Json::array({bundle::KeyTagOf(kKeyA)}));
  const Json& gone = json["manifests"][1];
  EXPECT_EQ(gone["digest"], first.ToString());
  EXPECT_EQ(gone["result"], "deleted");
  EXPECT_EQ(gone["repository"], "team/llama");
  EXPECT_EQ(gone["key"], kKeyA);
  EXPECT_EQ(gone["bytes"], gone["freedBytes"]);
  EXPECT_EQ(json["blobs"][0]["repository"], "team/llama");
  EXPECT_EQ(json["blobs"][0]["blobs"], 2);
}

TEST_F(GcFlags, MistakesAreReportedBeforeAnythingIsDeleted) {
  const struct {
    Words words;
    std::string message;
  } cases[] = {
      {{"gc"}, "--store: required"},
      {{"gc", "--store", "s3://x"}, "--store: "},
      {{"gc", "--store", store_url(), "--retain", "0"}, "--retain: "},
      {{"gc", "--store", store_url(), "--older-than", "5"}, "--older-than: expected a number"},
      {{"gc", "--store", store_url(), "--older-than", "-5d"}, "--older-than: "},
      {{"gc", "--store", store_url(), "--expire", "999999999999d"}, "--expire: "},
      {{"gc", "--store", store_url(), "--repository", "UP"}, "--repository: "}};
  for (const auto& each : cases) {
    const Outcome outcome = Run(each.words);
    EXPECT_EQ(outcome.code, kUsage) << each.message;
    EXPECT_THAT(outcome.err, HasSubstr(each.message));
  }
}

TEST_F(GcFlags, RegistryThatRefusesIsReportedWithTheRemedy) {
  RegistryContent content;
  const SmallRegistry registry(content);
  for (const char* text : {"print(1)\n", "print(2)\n"}) {
    temp_.Write("tree/inductor/ab/cabcd.py", text);
    const Outcome packed = Run({"pack", temp_ / "tree", "oci://" + registry.host() + "/team/llama",
                                "--node-facts", temp_ / "facts.json"});
    ASSERT_EQ(packed.code, 0) << packed.err;
  }
  Words words = {"gc", "--store", "oci://" + registry.host(), "--older-than", "0s"};
  const Outcome unnamed = Run(words);
  EXPECT_EQ(unnamed.code, kFailed);
  EXPECT_THAT(unnamed.err, HasSubstr("name them with --repository"));
  words.insert(words.end(), {"--repository", "team/llama"});
  const Outcome refused = Run(words);
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("REGISTRY_STORAGE_DELETE_ENABLED=true"));
  words.emplace_back("--dry-run");
  const Outcome planned = Run(words);
  EXPECT_EQ(planned.code, kOk) << planned.err;
  EXPECT_THAT(planned.err, ContainsRegex("would delete 1 manifests, kept 1; the registry's own "
                                         "garbage collection frees [0-9.]+ k?B"));
}

TEST_F(GcFlags, DamagedManifestStaysAndStopsTheSweepOfItsRepository) {
  const Digest old = Publish("team/llama", 9);
  const Digest newest = Publish("team/llama", 8);
  Publish("team/qwen", 9);
  const Digest qwen = Publish("team/qwen", 8);
  const std::string blob = "bundles/team/llama/blobs/sha256/" + newest.hex();
  ASSERT_EQ(::chmod((temp_ / blob).c_str(), 0644), 0);
  temp_.Write(blob, "damaged");
  const Outcome outcome = Gc({});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, ContainsRegex("kept +not a bundle .*" + newest.ToString()));
  EXPECT_THAT(outcome.err, HasSubstr("does not match its digest"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot be read, so that its blobs are unknown"));
  bundle::LayoutStore store(temp_ / "bundles", SystemClock());
  EXPECT_TRUE(store.ReadManifest("team/llama", old, {}).ok()) << "the newest that can be read";
  EXPECT_EQ(store.ListManifests("team/qwen", {})->manifests.size(), 1U) << qwen.Short();
}

}  // namespace
}  // namespace cachewarm::cli
