// SPDX-License-Identifier: Apache-2.0
// The program cachewarm-operator as a process, its settings in a file, beside an API server that
// the test serves.
#include "tests/fakes/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "lib/codec/json_value.h"
#include "lib/http/client.h"
#include "operator/webhook/registration.h"
#include "tests/fakes/await.h"
#include "tests/fakes/crds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/free_port.h"
#include "tests/fakes/kube_front.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::op {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

class OperatorProgram : public ::testing::Test {
 protected:
  OperatorProgram() : server_(SystemClock()), front_(server_) {
    fakes::PutCrds(server_);
    folder_.Write("kubeconfig", front_.Kubeconfig());
  }

  void Start(const std::string& file) {
    folder_.Write("config.yaml",
                  fmt::format("listen: 127.0.0.1:{}\nwebhookListen: 127.0.0.1:0\n{}", port_, file));
    program_ = std::make_unique<fakes::Program>(
        std::vector<std::string>{fakes::BuiltProgram(CACHEWARM_OPERATOR), "--config",
                                 folder_ / "config.yaml", "--kubeconfig", folder_ / "kubeconfig",
                                 "--identity=me"},
        folder_.path());
  }
  std::string Get(const std::string& path) const {
    const auto client = *http::MakeClient({});
    const auto answer =
        client->Send({.url = fmt::format("http://127.0.0.1:{}{}", port_, path)}, {});
    return answer.ok() ? answer->body : "";
  }
  bool AwaitMetric(const std::string& line) const {
    // A sample begins a line; in a HELP line the same words may follow the name.
    return fakes::Await([&] { return Get("/metrics").find("\n" + line) != std::string::npos; },
                        std::chrono::seconds(60));
  }
  // The program's time from SIGTERM to its end; it must end well.
  milliseconds TimeToEnd() {
    const auto begin = steady_clock::now();
    program_->Signal(SIGTERM);
    EXPECT_EQ(program_->Wait(), 0) << program_->log();
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
  }

  TempDir folder_;
  const int port_ = fakes::FreePort();
  fakes::FakeApiServer server_;
  fakes::KubeFront front_;
  std::unique_ptr<fakes::Program> program_;
};

TEST_F(OperatorProgram, LeadsAndServesAsItsFileSays) {
  Start("leaderElect: true\n");
  ASSERT_TRUE(AwaitMetric("cachewarm_leader 1")) << program_->log();
  EXPECT_THAT(Get("/metrics"), HasSubstr("cachewarm_api_requests_total{code=\"200\",resource="
                                         "\"nodecaches\",verb=\"list\"} 1"));
  EXPECT_THAT(Get("/metrics"), HasSubstr("cachewarm_api_request_seconds_count{verb=\"list\"} "));
  ASSERT_EQ(server_.All(kube::kLeases).size(), 1U);
}

TEST_F(OperatorProgram, ExitCodeDistinguishesUsageErrorsFromFailures) {
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), fakes::BuiltProgram(CACHEWARM_OPERATOR));
    program_ = std::make_unique<fakes::Program>(words, folder_.path());
    return program_->Wait();
  };
  EXPECT_EQ(run({"--rot=/x"}), 2);
  EXPECT_THAT(program_->log(), HasSubstr("cachewarm-operator: "));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_THAT(program_->out(), HasSubstr("cachewarm-operator "));
  EXPECT_EQ(program_->log(), "");
  EXPECT_EQ(run({"--kubeconfig=" + folder_ / "none"}), 1);
  EXPECT_THAT(program_->log(), HasSubstr("cannot configure the API server client"));
  const fakes::RawServer taken([](fakes::RawConnection&, int) {});
  EXPECT_EQ(run({"--kubeconfig=" + folder_ / "kubeconfig",
                 fmt::format("--listen=127.0.0.1:{}", taken.port())}),
            1);
  EXPECT_THAT(program_->log(), HasSubstr("operator failed"));
}

TEST_F(OperatorProgram, LogLevelDropsLinesBelowIt) {
  Start("logLevel: error\n");
  ASSERT_TRUE(AwaitMetric("cachewarm_leader 1"));
  EXPECT_THAT(program_->log(), Not(HasSubstr("operator started")));
  program_.reset();
  Start("logLevel: info\n");
  EXPECT_TRUE(
      fakes::Await([&] { return program_->Logged("operator started"); }, std::chrono::seconds(60)));
}

// A machine under load may add to it: the best of three counts.
TEST_F(OperatorProgram, EndsWithinTwoSecondsOfSigterm) {
  milliseconds best = milliseconds::max();
  for (int i = 0; i < 3 && best > milliseconds(2000); ++i) {
    Start("");
    ASSERT_TRUE(AwaitMetric("cachewarm_leader 1"));
    best = std::min(best, TimeToEnd());
    EXPECT_TRUE(program_->Logged("operator stopped")) << program_->log();
  }
  EXPECT_LE(best, milliseconds(2000));
}

TEST_F(OperatorProgram, ThatServesTheWebhookAnswersForThreeSecondsMore) {
  server_.Serve(kube::kMutatingPolicies, false);
  server_.Put(
      kube::kMutatingWebhooks,
      {{"metadata", {{"name", std::string(webhook::kAdmissionName)}}},
       {"webhooks", codec::Json::array({{{"clientConfig", {{"service", {{"name", "x"}}}}}}})}});
  server_.Put(
      kube::kSecrets,
      {{"metadata",
        {{"name", std::string(webhook::kWebhookName)}, {"namespace", "cachewarm-system"}}}});
  Start("");
  ASSERT_TRUE(
      fakes::Await([&] { return program_->Logged("webhook served"); }, std::chrono::seconds(60)))
      << program_->log();
  EXPECT_GE(TimeToEnd(), milliseconds(3000));
  EXPECT_TRUE(program_->Logged("operator stopped")) << program_->log();
  EXPECT_FALSE(program_->Logged("not stopped in time"));
}

}  // namespace
}  // namespace cachewarm::op
