// SPDX-License-Identifier: Apache-2.0
// Tests every option, operand and variable of "cachewarm release", from the command line to the
// pods of an API server.
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/http/client.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube_front.h"
#include "tests/fakes/tunnel_proxy.h"
#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

// An API server on loopback, with one kubeconfig file.
class Cluster {
 public:
  explicit Cluster(const Clock& clock) : clock_(clock), server_(clock), front_(server_) {}

  // Adds a held pod that was created `age` ago.
  void Hold(const std::string& ns, const std::string& name, seconds age = seconds(1)) {
    server_.Put(kube::kPods,
                {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata",
                  {{"namespace", ns},
                   {"name", name},
                   {"uid", "uid-" + name},
                   {"creationTimestamp", FormatTime(clock_.Now() - age)},
                   {"annotations", {{"cachewarm.io/warmup", "llama"}}}}},
                 {"spec",
                  {{"containers", Json::array({{{"name", "c"}}})},
                   {"schedulingGates", {{{"name", std::string(api::kSchedulingGate)}}}}}}});
  }
  // The pods without a gate, as "namespace/name".
  std::vector<std::string> Released() const {
    std::vector<std::string> names;
    for (const kube::Object& pod : server_.All(kube::kPods)) {
      const Json* gates = codec::At(*pod, {"spec", "schedulingGates"});
      if (gates == nullptr || gates->empty()) {
        names.push_back(kube::NameOf(*pod).ns + "/" + kube::NameOf(*pod).name);
      }
    }
    return names;
  }

  fakes::FakeApiServer& server() { return server_; }
  std::string Url() const {
    const std::string text = front_.Kubeconfig();
    const size_t at = text.find("http://");
    return text.substr(at, text.find('"', at) - at);
  }
  // A kubeconfig whose current context has the namespace "team"; "two" has the namespace "other".
  std::string Kubeconfig() const {
    std::string text = front_.Kubeconfig();
    const std::string contexts = "contexts: [";
    const size_t at = text.find(contexts) + contexts.size();
    text.insert(at, "{name: two, context: {cluster: c, user: u, namespace: other}}, ");
    text.replace(text.find("{cluster: c, user: u}"), 21, "{cluster: c, user: u, namespace: team}");
    return text;
  }

 private:
  const Clock& clock_;
  fakes::FakeApiServer server_;
  fakes::KubeFront front_;
};

class ReleaseFlags : public ProgramFixture {
 protected:
  ReleaseFlags() {
    http::PrepareProcess();
    clock_ = &time_;
    temp_.Write("config", cluster_.Kubeconfig());
    environment_["KUBECONFIG"] = temp_ / "config";
  }

  Outcome Release(Words words) {
    words.insert(words.begin(), "release");
    return Run(words);
  }

  fakes::FakeClock time_;
  Cluster cluster_{time_};
};

TEST_F(ReleaseFlags, AllReleasesThePodsOfOneNamespace) {
  cluster_.Hold("team", "a");
  cluster_.Hold("team", "b");
  cluster_.Hold("other", "c");
  const Outcome outcome = Release({"--all"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(cluster_.Released(), UnorderedElementsAre("team/a", "team/b"));
}

TEST_F(ReleaseFlags, NamesSelectPods) {
  for (const char* name : {"a", "b", "c"}) {
    cluster_.Hold("team", name);
  }
  const Outcome outcome = Release({"a", "c"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(cluster_.Released(), UnorderedElementsAre("team/a", "team/c"));
}

TEST_F(ReleaseFlags, AllNamespacesReleasesPodsEverywhere) {
  for (const char* flag : {"-A", "--all-namespaces"}) {
    cluster_.Hold("team", "a");
    cluster_.Hold("other", "c");
    EXPECT_EQ(Release({"--all", flag}).code, kOk);
    EXPECT_THAT(cluster_.Released(), UnorderedElementsAre("team/a", "other/c")) << flag;
  }
}

TEST_F(ReleaseFlags, NamespaceSelectsPods) {
  for (const Words& flag : {Words{"-n", "other"}, Words{"--namespace=other"}}) {
    cluster_.Hold("team", "a");
    cluster_.Hold("other", "c");
    Words words = {"--all"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_EQ(Release(words).code, kOk);
    EXPECT_THAT(cluster_.Released(), ElementsAre("other/c")) << flag[0];
  }
}

TEST_F(ReleaseFlags, ContextSelectsTheNamespace) {
  cluster_.Hold("team", "a");
  cluster_.Hold("other", "c");
  EXPECT_EQ(Release({"--all", "--context", "two"}).code, kOk);
  EXPECT_THAT(cluster_.Released(), ElementsAre("other/c"));
}

TEST_F(ReleaseFlags, KubeconfigPrecedesItsVariableAndTheVariableHome) {
  Cluster named(time_);
  Cluster usual(time_);
  temp_.Write("named", named.Kubeconfig());
  temp_.Write("home/.kube/config", usual.Kubeconfig());
  environment_["HOME"] = temp_ / "home";
  for (Cluster* cluster : {&cluster_, &named, &usual}) {
    cluster->Hold("team", "a");
  }
  EXPECT_EQ(Release({"--all", "--kubeconfig", temp_ / "named"}).code, kOk);
  EXPECT_THAT(named.Released(), ElementsAre("team/a"));
  EXPECT_THAT(cluster_.Released(), IsEmpty());
  EXPECT_EQ(Release({"--all"}).code, kOk);
  EXPECT_THAT(cluster_.Released(), ElementsAre("team/a")) << "of KUBECONFIG";
  EXPECT_THAT(usual.Released(), IsEmpty());
  environment_.erase("KUBECONFIG");
  EXPECT_EQ(Release({"--all"}).code, kOk);
  EXPECT_THAT(usual.Released(), ElementsAre("team/a")) << "of $HOME/.kube/config";
}

TEST_F(ReleaseFlags, KubeconfigVariableMergesFiles) {
  cluster_.Hold("team", "a");
  temp_.Write("current", "current-context: c\nusers: [{name: c, user: {token: unused}}]\n");
  environment_["KUBECONFIG"] = fmt::format("{0}/none:{0}/current:{0}/config", temp_.path());
  const Outcome outcome = Release({"--all"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(cluster_.Released(), ElementsAre("team/a"));
}

TEST_F(ReleaseFlags, ClusterSelectsTheServer) {
  Cluster other(time_);
  other.Hold("team", "a");
  cluster_.Hold("team", "a");
  std::string text = cluster_.Kubeconfig();
  const std::string clusters = "clusters: [";
  text.insert(text.find(clusters) + clusters.size(),
              fmt::format("{{name: other, cluster: {{server: \"{}\"}}}}, ", other.Url()));
  temp_.Write("config", text);
  const Outcome outcome = Release({"--all", "--cluster", "other"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(other.Released(), ElementsAre("team/a"));
  EXPECT_THAT(cluster_.Released(), IsEmpty());
}

// An API server that has no pods and records the requests.
class RecordingApi {
 public:
  RecordingApi()
      : server_([this](fakes::RawConnection& connection, int) {
          for (std::string request = connection.ReadRequest(); !request.empty();
               request = connection.ReadRequest()) {
            {
              const std::lock_guard lock(mutex_);
              requests_ += request;
            }
            connection.Write(fakes::RawResponse(200, R"({"kind":"PodList","items":[]})"));
          }
        }) {}

  // A kubeconfig with the users "u" and "admin", and "plugin", which runs the script "login".
  std::string Kubeconfig() const {
    return fmt::format(
        "current-context: c\n"
        "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        "clusters: [{{name: c, cluster: {{server: \"{}\"}}}}]\n"
        "users: [{{name: u, user: {{token: t}}}}, {{name: admin, user: {{token: root}}}},\n"
        "  {{name: plugin, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1beta1,\n"
        "    command: ./login}}}}}}]\n",
        server_.Url(""));
  }
  std::string requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::string requests_;
  fakes::RawServer server_;
};

TEST_F(ReleaseFlags, UserSelectsTheCredentials) {
  const RecordingApi api;
  temp_.Write("config", api.Kubeconfig());
  EXPECT_EQ(Release({"--all", "--user", "admin"}).code, kOk);
  EXPECT_THAT(api.requests(), ContainsRegex("Authorization: ?Bearer root\r"));
}

TEST_F(ReleaseFlags, AsAndAsGroupImpersonate) {
  const RecordingApi api;
  temp_.Write("config", api.Kubeconfig());
  EXPECT_THAT(Release({"--all", "--as-group", "ops"}).err, HasSubstr("--as-group"));
  EXPECT_EQ(api.requests(), "");
  const Outcome outcome =
      Release({"--all", "--as", "alice", "--as-group", "ops", "--as-group", "dev"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(api.requests(), ContainsRegex("Impersonate-User: ?alice\r"));
  EXPECT_THAT(api.requests(), ContainsRegex("Impersonate-Group: ?ops\r"));
  EXPECT_THAT(api.requests(), ContainsRegex("Impersonate-Group: ?dev\r"));
  EXPECT_THAT(api.requests(), ContainsRegex("Authorization: ?Bearer t\r"));
}

TEST_F(ReleaseFlags, CredentialPluginGivesTheToken) {
  const RecordingApi api;
  temp_.Write("config", api.Kubeconfig());
  temp_.Write("login",
              "#!/bin/sh\necho \"device code: $CODE\" >&2\n"
              "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":"
              "\"client.authentication.k8s.io/v1beta1\",\"status\":{\"token\":\"minted\"}}'\n");
  std::filesystem::permissions(temp_ / "login", std::filesystem::perms::owner_all);
  environment_["CODE"] = "ABCD";
  const Outcome outcome = Release({"--all", "--user", "plugin"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("device code: ABCD\n"));
  EXPECT_THAT(api.requests(), ContainsRegex("Authorization: ?Bearer minted\r"));

  temp_.Write("login", "#!/bin/sh\necho sign in first >&2\nexit 3\n");
  const Outcome failed = Release({"--all", "--user", "plugin"});
  EXPECT_EQ(failed.code, kFailed);
  EXPECT_THAT(failed.err, HasSubstr("sign in first\n"));
  EXPECT_THAT(failed.err,
              HasSubstr("login of user \"plugin\": the program failed with exit code 3"));
}

TEST_F(ReleaseFlags, PastDeadlineReleasesOnlyOverduePods) {
  cluster_.Hold("team", "young", seconds(10));
  cluster_.Hold("team", "overdue", seconds(66));
  const Outcome outcome = Release({"--all", "--past-deadline"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(cluster_.Released(), ElementsAre("team/overdue"));
  EXPECT_THAT(outcome.err, HasSubstr("1 not due yet"));
}

TEST_F(ReleaseFlags, MaxHoldMovesTheDeadline) {
  cluster_.Hold("team", "a", seconds(30));
  EXPECT_EQ(Release({"--all", "--past-deadline"}).code, kOk);
  EXPECT_THAT(cluster_.Released(), IsEmpty());
  EXPECT_EQ(Release({"--all", "--past-deadline", "--max-hold", "20"}).code, kOk);
  EXPECT_THAT(cluster_.Released(), ElementsAre("team/a"));
}

TEST_F(ReleaseFlags, DryRunListsPodsAndKeepsThemHeld) {
  cluster_.Hold("team", "a");
  const Outcome outcome = Release({"--all", "--dry-run"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("team/a"));
  EXPECT_THAT(outcome.err, HasSubstr("would release 1 pods"));
  EXPECT_THAT(cluster_.Released(), IsEmpty());
}

TEST_F(ReleaseFlags, RemovePolicyDeletesBindingAndWebhook) {
  cluster_.Hold("team", "a");
  const auto put = [&](const kube::Resource& resource) {
    cluster_.server().Put(resource, {{"metadata", {{"name", std::string(api::kGroup)}}}});
  };
  put(kube::kMutatingPolicyBindings);
  put(kube::kMutatingWebhooks);
  EXPECT_EQ(Release({"--all", "-A", "--dry-run"}).code, kOk);
  EXPECT_EQ(cluster_.server().All(kube::kMutatingPolicyBindings).size(), 1U);
  const std::jthread ticking([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (time_.AwaitWaiters(1, seconds(1))) {
        time_.Advance(seconds(1));
      }
    }
  });
  const Outcome outcome = Release({"--all", "-A", "--remove-policy"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_TRUE(cluster_.server().All(kube::kMutatingPolicyBindings).empty());
  EXPECT_TRUE(cluster_.server().All(kube::kMutatingWebhooks).empty());
  EXPECT_THAT(cluster_.Released(), ElementsAre("team/a"));
}

TEST_F(ReleaseFlags, OutputSelectsTheFormat) {
  cluster_.Hold("team", "a", seconds(30));
  cluster_.Hold("team", "b", seconds(500));
  const Outcome outcome = Release({"--all", "--past-deadline", "--output", "json"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_EQ(outcome.err, "");
  const Json json = Parsed(outcome);
  EXPECT_EQ(json["notDue"], 1);
  ASSERT_EQ(json["pods"].size(), 1U);
  EXPECT_EQ(json["pods"][0]["namespace"], "team");
  EXPECT_EQ(json["pods"][0]["pod"], "b");
  EXPECT_EQ(json["pods"][0]["warmup"], "llama");
  EXPECT_EQ(json["pods"][0]["heldSeconds"], 500);
  EXPECT_EQ(json["pods"][0]["result"], "released");
  EXPECT_EQ(Release({"--all", "--dry-run", "-o", "name"}).out, "pod/a\n");
  EXPECT_THAT(Release({"--all", "--dry-run", "-o", "yaml"}).out, HasSubstr("pod: a\n"));
  EXPECT_THAT(
      Release({"--all", "--dry-run", "-o", "wide"}).out,
      ContainsRegex("RESULT +HELD +POD +WARMUP +MESSAGE\nwould release +30s +team/a +llama"));
  EXPECT_EQ(Release({"--all", "-o", "text"}).code, kUsage);
  EXPECT_EQ(Release({"pod/a", "-o", "name"}).out, "pod/a\n");
  EXPECT_THAT(cluster_.Released(), UnorderedElementsAre("team/a", "team/b"));
}

// Tests cannot write the directory of the service account, so the error shows which variables were
// read.
TEST_F(ReleaseFlags, InAPodTheVariablesNameTheApiServer) {
  environment_.erase("KUBECONFIG");
  EXPECT_THAT(Release({"--all"}).err, HasSubstr("KUBERNETES_SERVICE_PORT are not set"));
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_THAT(Release({"--all"}).err, HasSubstr("KUBERNETES_SERVICE_PORT are not set"));
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_THAT(Release({"--all"}).err, HasSubstr("serviceaccount/token"));
  environment_.erase("KUBERNETES_SERVICE_HOST");
  EXPECT_THAT(Release({"--all"}).err, HasSubstr("KUBERNETES_SERVICE_PORT are not set"));
}

TEST_F(ReleaseFlags, HttpsProxyTunnelsToTheApiServer) {
  const fakes::Authority authority(temp_.path(), "local");
  const std::string leaf = authority.Issue("api", "DNS:api.test");
  const fakes::RawServer server(
      [](fakes::RawConnection& connection, int) {
        while (!connection.ReadRequest().empty()) {
          connection.Write(fakes::RawResponse(200, R"({"kind":"PodList","items":[]})"));
        }
      },
      {.certificate_file = leaf + ".crt", .key_file = leaf + ".key"});
  const fakes::TunnelProxy proxy(server.port());
  temp_.Write("config",
              fmt::format("current-context: c\n"
                          "clusters: [{{name: c, cluster: {{server: \"https://api.test\", "
                          "certificate-authority: {}}}}}]\n"
                          "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                          "users: [{{name: u, user: {{token: t}}}}]\n",
                          authority.ca()));
  environment_["HTTPS_PROXY"] = "http://" + proxy.address();
  const Outcome outcome = Release({"--all"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(proxy.asked(), Contains("CONNECT api.test:443 HTTP/1.1"));
}

}  // namespace
}  // namespace cachewarm::cli
