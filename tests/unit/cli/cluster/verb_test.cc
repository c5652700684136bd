// SPDX-License-Identifier: Apache-2.0
// Calls "cachewarm release" with command lines, against a server with scripted responses.
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>

#include "cli/verbs.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kOneHeldPod[] =
    R"({"kind":"PodList","metadata":{},"items":[{"metadata":{"namespace":"team","name":"held",)"
    R"("uid":"u1","creationTimestamp":"2026-11-21T08:00:00Z","annotations":)"
    R"({"cachewarm.io/warmup":"llama"}},"spec":{"schedulingGates":)"
    R"([{"name":"cachewarm.io/wait-for-cache"}],)"
    R"("containers":[{"name":"c"}]}}]})";

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// An API server that responds to each request with the result of `answer`.
class Api {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  explicit Api(Answer answer)
      : answer_(std::move(answer)), server_([this](fakes::RawConnection& connection, int) {
          for (std::string request = connection.ReadRequest(); !request.empty();
               request = connection.ReadRequest()) {
            {
              std::lock_guard lock(mutex_);
              requests_ += request.substr(0, request.find('\r')) + "\n";
            }
            connection.Write(answer_(request));
          }
        }) {}

  std::string url() const { return server_.Url(""); }
  std::string requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  Answer answer_;
  mutable std::mutex mutex_;
  std::string requests_;
  fakes::RawServer server_;
};

class ReleaseVerbTest : public ::testing::Test {
 protected:
  Outcome Run(std::vector<std::string> words) {
    words.insert(words.begin(), "release");
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = false,
                    .clock = SystemClock(),
                    .environment = environment_};
    const int code = RunProgram(words, console);
    return {code, out.str(), err.str()};
  }
  // A kubeconfig whose namespace is "team".
  std::string Kubeconfig(const std::string& server) {
    std::ofstream(temp_ / "config") << fmt::format(
        "current-context: one\n"
        "contexts: [{{name: one, context: {{cluster: c, user: u, namespace: team}}}}]\n"
        "clusters: [{{name: c, cluster: {{server: \"{}\"}}}}]\n"
        "users: [{{name: u, user: {{token: secret}}}}]\n",
        server);
    return temp_ / "config";
  }

  TempDir temp_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ReleaseVerbTest, UsageErrorsAreReportedBeforeAnyRequest) {
  const struct {
    std::vector<std::string> words;
    std::string message;
    ExitCode code = kUsage;
  } cases[] = {
      {{}, "names of pods or --all"},
      {{"pod", "--all"}, "names of pods or --all"},
      {{"pod", "-A"}, "--all-namespaces"},
      {{"--all", "--max-hold=3601"}, "--max-hold: \"3601\" is not a whole number from 0 to 3600"},
      {{"--all", "--max-hold=-1"}, "--max-hold"},
      {{"--all", "--max-hold=soon"}, "--max-hold"},
      {{"--all", "--remove-policy"}, "--remove-policy"},
      {{"--all", "-A", "--remove-policy", "--dry-run"}, "--remove-policy"},
      {{"--all", "-A", "--remove-policy", "--past-deadline"}, "--remove-policy"},
      {{"--all"}, "KUBERNETES_SERVICE_HOST", kFailed},
      {{"--all", "--context", "x"}, "--context"},
      {{"--all", "--kubeconfig", temp_ / "none"}, "none", kNotFound},
  };
  for (const auto& each : cases) {
    const Outcome outcome = Run(each.words);
    EXPECT_EQ(outcome.code, each.code) << each.message;
    EXPECT_THAT(outcome.err, HasSubstr(each.message));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(Run({"--all", "--nope"}).code, kUsage);
  environment_["KUBECONFIG"] = "/none/a:/none/b";
  EXPECT_THAT(Run({"--all"}).err, HasSubstr("no kubeconfig found (/none/a, /none/b)"));
  EXPECT_THAT(Run({"--all", "--as", "x"}).err, HasSubstr("--as: no kubeconfig found"));
}

TEST_F(ReleaseVerbTest, UsesNamespaceOfContextOrCommandLine) {
  const struct {
    std::vector<std::string> words;
    std::string requests;
  } cases[] = {{{"--all"}, "GET /api/v1/namespaces/team/pods?"},
               {{"--all", "-n", "other"}, "GET /api/v1/namespaces/other/pods?"},
               {{"--all", "-A"}, "GET /api/v1/pods?"},
               {{"a-pod"}, "GET /api/v1/namespaces/team/pods/a-pod "}};
  for (const auto& each : cases) {
    Api api([](const std::string&) {
      return fakes::RawResponse(404, R"({"kind":"Status","reason":"NotFound","code":404})");
    });
    environment_["KUBECONFIG"] = Kubeconfig(api.url());
    EXPECT_EQ(Run(each.words).code, kNotFound) << each.requests;
    EXPECT_THAT(api.requests(), HasSubstr(each.requests));
  }
}

TEST_F(ReleaseVerbTest, TableListsEveryPod) {
  Api api([](const std::string& request) {
    return fakes::RawResponse(200, request.starts_with("GET") ? kOneHeldPod : "{}");
  });
  const std::vector<std::string> words = {"--all", "--kubeconfig", Kubeconfig(api.url())};
  const Outcome table = Run(words);
  EXPECT_EQ(table.code, kOk) << table.err;
  EXPECT_THAT(table.out, ::testing::ContainsRegex("RESULT +HELD +POD +WARMUP\n"));
  EXPECT_THAT(table.out, ::testing::ContainsRegex("released +[0-9]+.* +team/held +llama\n"));
  EXPECT_THAT(table.err, HasSubstr("released 1 pods\n"));
  EXPECT_THAT(api.requests(), HasSubstr("PATCH /api/v1/namespaces/team/pods/held?"));

  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"-o", "json", "--dry-run"});
  const Outcome json = Run(as_json);
  const auto parsed = codec::ParseJson(json.out);
  ASSERT_TRUE(parsed.ok()) << json.out;
  EXPECT_EQ((*parsed)["pods"][0]["result"], "would release");
  EXPECT_EQ((*parsed)["pods"][0]["pod"], "held");
  EXPECT_EQ((*parsed)["notDue"], 0);
  EXPECT_EQ(json.err, "");
}

TEST_F(ReleaseVerbTest, PodThatStaysHeldIsAFailure) {
  Api api([](const std::string& request) {
    return request.starts_with("GET /api/v1/namespaces/team/pods?")
               ? fakes::RawResponse(200, kOneHeldPod)
               : fakes::RawResponse(403, R"({"kind":"Status","code":403,"message":"not you"})");
  });
  const Outcome outcome = Run({"--all", "--kubeconfig", Kubeconfig(api.url())});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, HasSubstr("failed"));
  EXPECT_THAT(outcome.err, HasSubstr("not you"));
  EXPECT_THAT(outcome.err, HasSubstr("released 0 pods, 1 failed"));
}

}  // namespace
}  // namespace cachewarm::cli
