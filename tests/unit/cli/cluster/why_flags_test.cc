// SPDX-License-Identifier: Apache-2.0
// Tests every option and operand of "cachewarm why", from the command line to the requests at an
// API server.
#include <mutex>

#include "gmock/gmock.h"
#include "lib/http/client.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr char kMissedPod[] =
    R"({"kind":"Pod","metadata":{"namespace":"team","name":"llama-1","annotations":)"
    R"({"cachewarm.io/warmup":"llama","cachewarm.io/start":)"
    R"("{\"result\":\"miss\",\"startSeconds\":42,\"cause\":\"argument --dtype differs\"}"}}})";
constexpr char kWarmup[] =
    R"({"kind":"CacheWarmup","apiVersion":"cachewarm.io/v1alpha1","metadata":{"namespace":"team",)"
    R"("name":"llama"},"spec":{"selector":{"matchLabels":{"app":"llama"}}},"status":{"starts":)"
    R"({"recent":[{"podUID":"1","result":"inert","pod":"llama-2","cause":"HOME differs"},)"
    R"({"podUID":"2","result":"hit","pod":"llama-3"}]}}})";

// An API server with one pod and one warmup in every namespace; other names do not exist.
class OnePodApi {
 public:
  OnePodApi()
      : server_([this](fakes::RawConnection& connection, int) {
          for (std::string request = connection.ReadRequest(); !request.empty();
               request = connection.ReadRequest()) {
            {
              const std::lock_guard lock(mutex_);
              requests_ += request;
            }
            connection.Write(AnswerTo(request));
          }
        }) {}

  std::string Kubeconfig() const {
    return fmt::format(
        "current-context: c\n"
        "contexts: [{{name: c, context: {{cluster: c, user: u, namespace: team}}}},\n"
        "  {{name: two, context: {{cluster: c, user: u, namespace: other}}}}]\n"
        "clusters: [{{name: c, cluster: {{server: \"{0}\"}}}},\n"
        "  {{name: d, cluster: {{server: \"{0}/d\"}}}}]\n"
        "users: [{{name: u, user: {{token: t}}}}, {{name: admin, user: {{token: root}}}}]\n",
        server_.Url(""));
  }
  std::string requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  static std::string AnswerTo(const std::string& request) {
    if (request.find("/pods/llama-1 ") != std::string::npos) {
      return fakes::RawResponse(200, kMissedPod);
    }
    if (request.find("/cachewarmups/llama ") != std::string::npos) {
      return fakes::RawResponse(200, kWarmup);
    }
    return fakes::RawResponse(404, R"({"kind":"Status","code":404,"reason":"NotFound"})");
  }

  mutable std::mutex mutex_;
  std::string requests_;
  fakes::RawServer server_;
};

class WhyFlags : public ProgramFixture {
 protected:
  WhyFlags() {
    http::PrepareProcess();
    temp_.Write("config", api_.Kubeconfig());
  }

  Outcome Why(Words words) {
    words.insert(words.begin(), {"why", "--kubeconfig", temp_ / "config"});
    return Run(words);
  }

  OnePodApi api_;
};

TEST_F(WhyFlags, PodIsExplainedByItsAnnotation) {
  for (const char* operand : {"pod/llama-1", "pods/llama-1", "po/llama-1"}) {
    const Outcome outcome = Why({operand});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("pod team/llama-1: miss, started in 42.0 s"));
    EXPECT_THAT(outcome.out, HasSubstr("Cause: argument --dtype differs\n"));
  }
}

TEST_F(WhyFlags, WarmupIsExplainedByItsLastStartThatWasNoHit) {
  for (const char* operand : {"cachewarmup/llama", "cachewarmups/llama", "cw/llama"}) {
    const Outcome outcome = Why({operand});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("pod team/llama-2: inert\n"));
    EXPECT_THAT(outcome.out, HasSubstr("Cause: HOME differs\n"));
  }
}

TEST_F(WhyFlags, OtherOperandsAreWrongUsage) {
  for (const char* operand : {"llama-1", "deployment/llama", "pod/", "pod/a/b", ""}) {
    const Outcome outcome = Why({operand});
    EXPECT_EQ(outcome.code, kUsage) << operand;
    EXPECT_THAT(outcome.err, HasSubstr("expected pod/NAME or cachewarmup/NAME"));
  }
  EXPECT_EQ(api_.requests(), "");
}

TEST_F(WhyFlags, MissingObjectIsNotFound) {
  const Outcome pod = Why({"pod/none"});
  EXPECT_EQ(pod.code, kNotFound);
  EXPECT_THAT(pod.err, HasSubstr("pod team/none does not exist"));
  EXPECT_EQ(Why({"cachewarmup/none"}).code, kNotFound);
}

TEST_F(WhyFlags, OutputIsJsonOrYaml) {
  EXPECT_THAT(Why({"pod/llama-1", "--output", "yaml"}).out, HasSubstr("\nresult: miss\n"));
  EXPECT_EQ(Why({"pod/llama-1", "-o", "name"}).code, kUsage);
  const Json json = Parsed(Why({"pod/llama-1", "-o", "json"}));
  EXPECT_EQ(json["pod"], "llama-1");
  EXPECT_EQ(json["namespace"], "team");
  EXPECT_EQ(json["warmup"], "llama");
  EXPECT_EQ(json["result"], "miss");
  EXPECT_EQ(json["startSeconds"], 42.0);
  EXPECT_THAT(json["explanation"].get<std::string>(), HasSubstr("argument --dtype differs"));
}

TEST_F(WhyFlags, NamespaceSelectsThePod) {
  for (const Words& flag : {Words{"-n", "prod"}, Words{"--namespace=prod"}}) {
    Words words = {"pod/llama-1"};
    words.insert(words.end(), flag.begin(), flag.end());
    EXPECT_EQ(Why(words).code, kOk);
  }
  EXPECT_THAT(api_.requests(), HasSubstr("GET /api/v1/namespaces/prod/pods/llama-1 "));
}

TEST_F(WhyFlags, OptionsSelectTheCluster) {
  EXPECT_EQ(Why({"pod/llama-1", "--context", "two"}).code, kOk);
  EXPECT_THAT(api_.requests(), HasSubstr("/namespaces/other/pods/llama-1 "));
  EXPECT_EQ(Why({"pod/llama-1", "--cluster", "d"}).code, kOk);
  EXPECT_THAT(api_.requests(), HasSubstr("GET /d/api/v1/namespaces/team/pods/llama-1 "));
  EXPECT_EQ(Why({"pod/llama-1", "--user", "admin"}).code, kOk);
  EXPECT_THAT(api_.requests(), ContainsRegex("Authorization: ?Bearer root\r"));
  EXPECT_EQ(Why({"pod/llama-1", "--as", "alice", "--as-group", "ops"}).code, kOk);
  EXPECT_THAT(api_.requests(), ContainsRegex("Impersonate-User: ?alice\r"));
  EXPECT_THAT(api_.requests(), ContainsRegex("Impersonate-Group: ?ops\r"));
}

}  // namespace
}  // namespace cachewarm::cli
