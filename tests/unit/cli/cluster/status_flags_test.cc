// SPDX-License-Identifier: Apache-2.0
// Tests every option and operand of "cachewarm status", from the command line to its output.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/codec/yaml.h"
#include "lib/kube/core/error.h"
#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kType = "nvidia/h100-80gb-hbm3/sm_90";
const std::string kClass = "x86-64-v4/amd-25-17/5c0d9f21";

// A stream that another thread may read while it is written.
class SharedText : public std::streambuf {
 public:
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  int overflow(int c) override {
    std::lock_guard lock(mutex_);
    text_ += static_cast<char>(c);
    return c;
  }

  mutable std::mutex mutex_;
  std::string text_;
};

class StatusFlags : public ClusterFixture {
 protected:
  StatusFlags() { clock_ = nullptr; }  // watches wait by the clock

  Outcome Status(Words words) {
    words.insert(words.begin(), "status");
    return Run(words);
  }

  Digest bundle() const { return *Digest::Parse("sha256:" + std::string(64, 'a')); }

  void PutWarmup(const std::string& name, const std::string& nodes, const std::string& ns = "team",
                 const std::string& ready = "True") {
    api::WarmupSpec spec;
    spec.selector = {{"app", name}};
    api::WarmupStatus status;
    status.summary = {
        .types = "1/1", .nodes = nodes, .hit = "90%", .partial = "5%", .saved = "3h41m"};
    status.conditions = {
        {.type = "Ready", .status = ready, .reason = "Accepted", .message = "ok"},
        {.type = "Warm", .status = "False", .reason = "Fetching", .message = "soon"}};
    status.starts.counts.hit = 9;
    status.starts.cold_median_seconds = 190;
    status.bundles = {{.key = std::string(64, 'b'),
                       .gpu_type = kType,
                       .cpu_class = kClass,
                       .image = "llama:1",
                       .digest = bundle(),
                       .bytes = 100'000'000,
                       .nodes_desired = 2}};
    server_.Put(kube::kCacheWarmups,
                {{"apiVersion", "cachewarm.io/v1alpha1"},
                 {"kind", "CacheWarmup"},
                 {"metadata", {{"namespace", ns}, {"name", name}, {"uid", "uid-" + name}}},
                 {"spec", api::EncodeSpec(spec)},
                 {"status", api::EncodeStatus(status)}});
  }

  // A node that fetches the bundle of the warmup llama.
  void PutNode(const std::string& name, int64_t bytes_done,
               api::BundleState state = api::BundleState::kFetching) {
    api::NodeCacheSpec spec;
    spec.warmups = {
        {.uid = "uid-llama",
         .ns = "team",
         .name = "llama",
         .run_as = {"image"},
         .bundles = {{.key = std::string(64, 'b'), .digest = bundle(), .bytes = 100'000'000}}}};
    api::NodeCacheStatus status;
    status.node.gpu_type = kType;
    status.node.cpu_class = kClass;
    status.heartbeat = SystemClock().Now();
    status.warmups = {
        {.uid = "uid-llama",
         .prepared = {"image"},
         .generation = "0a1b",
         .bundles = {
             {.digest = bundle(), .state = state, .bytes_done = bytes_done, .fetch_seconds = 2}}}};
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", name}, {"uid", name}}},
                                    {"spec", api::EncodeSpec(spec)},
                                    {"status", api::EncodeStatus(status)}});
  }

  // Runs a watch, and interrupts it after `steps`, which runs beside it.
  Outcome Watch(Words words, const std::function<void(const SharedText&)>& steps) {
    ended_ = false;
    words.insert(words.begin(), "status");
    SharedText out_text;
    std::ostream out(&out_text);
    std::ostringstream err;
    std::stop_source stop;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = false,
                    .clock = SystemClock(),
                    .stop = stop.get_token(),
                    .environment = environment_};
    int code = -1;
    {
      const std::jthread watch([&] {
        code = RunProgram(words, console);
        ended_ = true;
      });
      steps(out_text);
      stop.request_stop();
    }
    return {code, out_text.text(), err.str()};
  }

  static void AwaitText(const SharedText& out, const std::string& text) {
    for (int i = 0; i < 3000 && out.text().find(text) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(out.text(), HasSubstr(text));
  }
  void AwaitWatches(int number) {
    for (int i = 0; i < 3000 && server_.watches() < number; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(server_.watches(), number);
  }

  std::atomic<bool> ended_ = false;  // the program of Watch()
};

TEST_F(StatusFlags, ListsTheWarmupsOfTheNamespace) {
  PutWarmup("llama", "3/12");
  PutWarmup("qwen", "1/1");
  PutWarmup("other", "1/1", "other");
  EXPECT_EQ(Status({}).out,
            "NAME    TYPES   NODES   HIT   PARTIAL   SAVED   READY   WARM\n"
            "llama   1/1     3/12    90%   5%        3h41m   True    False\n"
            "qwen    1/1     1/1     90%   5%        3h41m   True    False\n");
  EXPECT_EQ(Status({"-n", "empty"}).out, "");
  EXPECT_EQ(Status({"-n", "empty"}).err, "no CacheWarmup found\n");
}

TEST_F(StatusFlags, NamespacesAreSelected) {
  PutWarmup("llama", "3/12");
  PutWarmup("other", "1/1", "other");
  for (const char* flag : {"-n", "--namespace"}) {
    EXPECT_THAT(Status({flag, "other"}).out, HasSubstr("other   1/1")) << flag;
  }
  for (const char* flag : {"-A", "--all-namespaces"}) {
    const std::string out = Status({flag}).out;
    EXPECT_THAT(out, StartsWith("NAMESPACE   NAME")) << flag;
    EXPECT_THAT(out, HasSubstr("team        llama"));
    EXPECT_THAT(out, HasSubstr("other       other"));
  }
  EXPECT_EQ(Status({"llama", "-A"}).code, kUsage);
}

TEST_F(StatusFlags, WarmupShowsConditionsBuildsAndNodes) {
  PutWarmup("llama", "1/2");
  PutNode("n1", 100'000'000, api::BundleState::kActive);
  PutNode("n2", 40'000'000);
  const Outcome outcome = Status({"llama"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(outcome.out,
            "team/llama\n"
            "Ready   True Accepted: ok\n"
            "Warm    False Fetching: soon\n"
            "Starts  9 hit, 0 partial, 0 missed, 0 without a cache; saved 3h41m\n"
            "Median  3m10s cold, - warm\n"
            "\n"
            "GPU TYPE                      NODE   POD   STATE      BUNDLE         BYTES       "
            "              RATE        TAKEN   LEFT   MESSAGE\n"
            "nvidia/h100-80gb-hbm3/sm_90   n1     -     Active     aaaaaaaaaaaa   100 MB      "
            "              -           -       -\n"
            "nvidia/h100-80gb-hbm3/sm_90   n2     -     Fetching   aaaaaaaaaaaa   40.0 MB of 1"
            "00 MB, 40 %   20.0 MB/s   -       3s\n");
  EXPECT_EQ(Status({"cachewarmup.cachewarm.io/llama"}).out, outcome.out);
  EXPECT_EQ(Status({"absent"}).code, kNotFound);
}

TEST_F(StatusFlags, EnginesShowColdBesideWarmStarts) {
  PutWarmup("llama", "1/2");
  api::WarmupStatus status;
  status.starts.recent = {
      {.pod_uid = "a",
       .gpu_type = kType,
       .result = api::StartResult::kCold,
       .engine =
           api::EngineStart{
               .log = api::EngineLog::kFound, .compile_seconds = 95, .kv_cache_tokens = 180'000}},
      {.pod_uid = "b",
       .gpu_type = kType,
       .result = api::StartResult::kHit,
       .engine = api::EngineStart{
           .log = api::EngineLog::kFound, .compile_seconds = 7.25, .kv_cache_tokens = 188'640}}};
  server_.Edit(kube::kCacheWarmups, {.ns = "team", .name = "llama"}, [&](Json& warmup) {
    warmup["status"]["starts"] = api::EncodeStatus(status)["starts"];
  });
  EXPECT_THAT(
      Status({"llama"}).out,
      HasSubstr("\n\n"
                "GPU TYPE                      START   STARTS   WEIGHTS   COMPILE   GRAPHS   INIT "
                "  KV TOKENS\n"
                "nvidia/h100-80gb-hbm3/sm_90   cold    1        -         1m35s     -        -    "
                "  180000\n"
                "nvidia/h100-80gb-hbm3/sm_90   warm    1        -         7.2s      -        -    "
                "  188640\n\n"));
  const std::string yaml = Status({"llama", "-o", "yaml"}).out;
  EXPECT_THAT(yaml, HasSubstr("compileSeconds: 7.25"));
  EXPECT_THAT(yaml, HasSubstr("kvCacheTokens: 188640"));
}

TEST_F(StatusFlags, NodesThatMayNotBeListedAreNoted) {
  PutWarmup("llama", "1/2");
  server_.Intercept([](const kube::Request& request) {
    return request.path.ends_with("/nodecaches")
               ? kube::ToStatus({.code = 403, .reason = "Forbidden", .message = "no rights"})
               : absl::OkStatus();
  });
  const Outcome outcome = Status({"llama"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("Ready   True"));
  EXPECT_THAT(outcome.err, ContainsRegex("note: nodes are not shown: nodecaches: .*no rights"));
}

TEST_F(StatusFlags, OutputSelectsTheFormat) {
  PutWarmup("llama", "1/2");
  PutNode("n2", 40'000'000);
  const Json json = Parsed(Status({"llama", "--output", "json"}))["warmups"][0];
  EXPECT_EQ(json["name"], "llama");
  EXPECT_EQ(json["starts"]["hit"], 9);
  EXPECT_EQ(json["ready"]["status"], "True");
  ASSERT_EQ(json["progress"].size(), 1U);
  EXPECT_EQ(json["progress"][0]["bytesPerSecond"], 20'000'000);
  EXPECT_EQ(json["progress"][0]["leftSeconds"], 3.0);
  EXPECT_EQ(json["progress"][0]["takenSeconds"], nullptr);

  const auto yaml = codec::ParseYaml(Status({"-o", "yaml"}).out);
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  EXPECT_EQ((*yaml)["warmups"][0]["progress"][0]["state"], "Fetching");

  EXPECT_EQ(Status({"-o", "name"}).out, "cachewarmup.cachewarm.io/llama\n");
  EXPECT_THAT(Status({"-o", "wide"}).out, HasSubstr("BUNDLES   REASON     MESSAGE"));
  EXPECT_THAT(Status({"llama", "-o", "wide"}).out, HasSubstr(bundle().ToString()));
  EXPECT_THAT(Status({"llama", "-o", "wide"}).out, HasSubstr(kClass));
  const Outcome wrong = Status({"-o", "jsn"});
  EXPECT_EQ(wrong.code, kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("expected json, yaml, wide or name, not \"jsn\""));
}

TEST_F(StatusFlags, WatchPrintsChangedRowsUntilInterrupted) {
  PutWarmup("llama", "1/12");
  PutWarmup("qwen", "1/1");
  for (const char* flag : {"--watch", "-w"}) {
    PutWarmup("llama", "1/12");
    const Outcome outcome = Watch({flag}, [&](const SharedText& out) {
      AwaitText(out, "qwen");
      PutWarmup("llama", "2/12");
      AwaitText(out, "2/12");
      PutWarmup("llama", "3/12");
      AwaitText(out, "3/12");
    });
    EXPECT_EQ(outcome.code, kInterrupted);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out,
                HasSubstr("qwen    1/1     1/1     90%   5%        3h41m   True    False\n"
                          "llama   1/1     2/12    90%   5%        3h41m   True    False\n"
                          "llama   1/1     3/12    90%   5%        3h41m   True    False\n"));
  }
}

TEST_F(StatusFlags, WatchListsAgainAfterItExpired) {
  PutWarmup("llama", "1/12");
  const Outcome outcome = Watch({"--watch"}, [&](const SharedText& out) {
    AwaitText(out, "1/12");
    AwaitWatches(1);
    server_.Compact();
    server_.BreakWatches(absl::OutOfRangeError("too old resource version"));
    PutWarmup("llama", "2/12");
    AwaitText(out, "2/12");
  });
  EXPECT_EQ(outcome.code, kInterrupted);
}

TEST_F(StatusFlags, WatchOfOneWarmupPrintsNodesThatChange) {
  PutWarmup("llama", "0/2");
  PutNode("n1", 12'000'000);
  PutNode("n2", 20'000'000);
  const Outcome outcome = Watch({"llama", "-w"}, [&](const SharedText& out) {
    AwaitText(out, "20.0 MB of 100 MB");
    AwaitWatches(2);
    PutNode("n2", 60'000'000);
    AwaitText(out, "60.0 MB of 100 MB");
  });
  const size_t changed = outcome.out.find("60.0 MB");
  EXPECT_THAT(outcome.out.substr(changed), Not(HasSubstr("n1"))) << "n1 has not changed";
  EXPECT_EQ(outcome.out.find("12.0 MB"), outcome.out.rfind("12.0 MB"));
}

TEST_F(StatusFlags, WatchOfOneWarmupEndsWhenItIsDeleted) {
  PutWarmup("llama", "0/2");
  const Outcome outcome = Watch({"llama", "--watch"}, [&](const SharedText& out) {
    AwaitText(out, "team/llama");
    AwaitWatches(2);
    server_.Remove(kube::kCacheWarmups, {"team", "llama"});
    for (int i = 0; i < 3000 && !ended_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  EXPECT_EQ(outcome.code, kNotFound);
  EXPECT_EQ(outcome.err, "cachewarm status: CacheWarmup team/llama was deleted\n");
}

TEST_F(StatusFlags, WatchRefusesDocuments) {
  const Outcome outcome = Status({"--watch", "-o", "json"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("kubectl get cachewarmups -o json --watch"));
}

TEST_F(StatusFlags, StatesHaveColoursOnATerminal) {
  PutWarmup("llama", "1/2");
  PutNode("n1", 100'000'000, api::BundleState::kActive);
  out_is_terminal_ = true;
  EXPECT_THAT(Status({"llama"}).out, HasSubstr("\x1b[32mActive\x1b[0m   aaaa"));
}

TEST_F(StatusFlags, TextsOfTheClusterCannotControlTheTerminal) {
  PutWarmup("llama", "1/2", "team", "True");
  server_.Edit(kube::kCacheWarmups, {"team", "llama"},
               [](Json& object) { object["status"]["conditions"][1]["message"] = "a\x1b[2Jb\nc"; });
  EXPECT_THAT(Status({"-o", "wide"}).out, HasSubstr("a [2Jb c"));
  EXPECT_THAT(Status({"llama"}).out, HasSubstr("a [2Jb c"));
}

TEST_F(StatusFlags, OptionsOfTheClusterSelectIt) {
  PutWarmup("llama", "1/2");
  // --kubeconfig, --context, --cluster, --user, --as, --as-group
  ExpectClusterOptions({"status", "llama"}, kOk);
}

}  // namespace
}  // namespace cachewarm::cli
