// SPDX-License-Identifier: Apache-2.0
// Tests every option of "cachewarm report", from the command line to the file.
#include <filesystem>

#include "gmock/gmock.h"
#include "lib/http/client.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/resource.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/kube_front.h"
#include "tests/unit/cli/program_fixture.h"
#include "tests/unit/cli/report/objects.h"

namespace cachewarm::cli {
namespace {

using report::NodeObject;
using report::WarmupObject;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

constexpr std::string_view kPage = "<!DOCTYPE html>";

class ReportFlags : public ProgramFixture {
 protected:
  ReportFlags() {
    http::PrepareProcess();
    std::string config = front_.Kubeconfig();
    const std::string context = "{cluster: c, user: u}";
    config.replace(config.find(context), context.size(), "{cluster: c, user: u, namespace: team}");
    temp_.Write("config", config);
    server_.Put(kube::kCacheWarmups, WarmupObject("team", "llama", {}));
    server_.Put(kube::kCacheWarmups, WarmupObject("other", "qwen", {}));
    server_.Put(kube::kNodeCaches, NodeObject("node-1", {}, {}));
  }

  Outcome WriteReport(Words words) {
    words.insert(words.begin(), {"report", "--kubeconfig", temp_ / "config"});
    return Run(words);
  }

  fakes::FakeApiServer server_{SystemClock()};
  fakes::KubeFront front_{server_};
};

TEST_F(ReportFlags, OutputIsTheFile) {
  for (const char* flag : {"--output", "-o"}) {
    const Outcome outcome = WriteReport({flag, temp_ / "report.html"});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_EQ(outcome.out, (temp_ / "report.html") + "\n");
    EXPECT_THAT(outcome.err, ContainsRegex("reported 1 CacheWarmup and 0 nodes, [0-9.]+ kB"));
    EXPECT_THAT(Read("report.html"), StartsWith(std::string(kPage)));
    std::filesystem::remove(temp_ / "report.html");
  }
}

TEST_F(ReportFlags, OutputOfADashIsStandardOutput) {
  const Outcome outcome = WriteReport({"-o", "-"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(std::string(kPage)));
  EXPECT_THAT(outcome.out, testing::EndsWith("</html>\n"));
}

TEST_F(ReportFlags, WrongOutputIsReportedBeforeTheClusterIsRead) {
  const Outcome none = WriteReport({});
  EXPECT_EQ(none.code, kUsage);
  EXPECT_THAT(none.err, HasSubstr("--output: required"));
  const Outcome missing = WriteReport({"-o", temp_ / "absent/report.html"});
  EXPECT_NE(missing.code, kOk);
  EXPECT_THAT(missing.err, HasSubstr("absent"));
  EXPECT_EQ(WriteReport({"-o", temp_.path() + "/"}).code, kUsage);
  EXPECT_THAT(WriteReport({"-o", temp_.path()}).err, HasSubstr("not a regular file"));
  EXPECT_THAT(server_.Requests(), IsEmpty());
}

TEST_F(ReportFlags, EarlierReportIsReplacedAndAnyOtherFileOnlyWithForce) {
  temp_.Write("report.html", "");
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(WriteReport({"-o", temp_ / "report.html"}).code, kOk) << "empty, then a report";
  }
  temp_.Write("notes.html", "my notes");
  const Outcome refused = WriteReport({"-o", temp_ / "notes.html"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("exists and is not a report"));
  EXPECT_EQ(Read("notes.html"), "my notes");
  EXPECT_EQ(WriteReport({"-o", temp_ / "notes.html", "--force"}).code, kOk);
  EXPECT_THAT(Read("notes.html"), StartsWith(std::string(kPage)));
}

TEST_F(ReportFlags, LinkIsNotFollowed) {
  temp_.Write("notes", "my notes");
  std::filesystem::create_symlink("notes", temp_ / "link.html");
  EXPECT_THAT(WriteReport({"-o", temp_ / "link.html"}).err, HasSubstr("not a regular file"));
  EXPECT_EQ(Read("notes"), "my notes");
}

TEST_F(ReportFlags, NamespaceSelectsTheWarmups) {
  const std::string of_context = WriteReport({"-o", "-"}).out;
  EXPECT_THAT(of_context, HasSubstr("report of namespace team"));
  EXPECT_THAT(of_context, HasSubstr("llama"));
  EXPECT_THAT(of_context, Not(HasSubstr("qwen")));
  for (const char* flag : {"--namespace", "-n"}) {
    const std::string page = WriteReport({"-o", "-", flag, "other"}).out;
    EXPECT_THAT(page, HasSubstr("report of namespace other"));
    EXPECT_THAT(page, HasSubstr("qwen"));
    EXPECT_THAT(page, Not(HasSubstr("llama")));
  }
}

TEST_F(ReportFlags, AllNamespacesReportsOnTheCluster) {
  for (const char* flag : {"--all-namespaces", "-A"}) {
    const std::string page = WriteReport({"-o", "-", flag}).out;
    EXPECT_THAT(page, HasSubstr("team/llama"));
    EXPECT_THAT(page, HasSubstr("other/qwen"));
    EXPECT_THAT(page, HasSubstr("node-1"));
  }
  EXPECT_EQ(WriteReport({"-o", "-", "-A", "-n", "team"}).code, kUsage);
}

TEST_F(ReportFlags, OptionsOfTheClusterSelectIt) {
  for (const char* flag : {"--context", "--cluster", "--user"}) {
    const Outcome outcome = WriteReport({"-o", "-", flag, "absent"});
    EXPECT_NE(outcome.code, kOk) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("absent")) << flag;
  }
  EXPECT_NE(Run({"report", "-o", "-", "--kubeconfig", temp_ / "absent"}).code, kOk);
}

TEST_F(ReportFlags, ImpersonatesAUser) {
  EXPECT_NE(WriteReport({"-o", "-", "--as-group", "auditors"}).code, kOk) << "needs a user";
  EXPECT_EQ(WriteReport({"-o", "-", "--as-group", "auditors", "--as", "ann"}).code, kOk);
}

TEST_F(ReportFlags, NodesThatMayNotBeReadAreLeftOutAndNamed) {
  server_.Intercept([](const kube::Request& request) {
    return request.path.ends_with("/nodecaches")
               ? kube::ToStatus({.code = 403, .reason = "Forbidden", .message = "not for you"})
               : absl::OkStatus();
  });
  const Outcome outcome = WriteReport({"-o", "-"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.err, ContainsRegex("the report has no nodes: .*not for you"));
  EXPECT_THAT(outcome.out, ContainsRegex("The nodes could not be read: .*not for you"));
}

TEST_F(ReportFlags, ServerThatFailsLeavesTheEarlierReport) {
  EXPECT_EQ(WriteReport({"-o", temp_ / "report.html"}).code, kOk);
  const std::string earlier = Read("report.html");
  server_.Serve(kube::kNodeCaches, false);
  EXPECT_EQ(WriteReport({"-o", temp_ / "report.html"}).code, kNotFound);
  EXPECT_EQ(Read("report.html"), earlier);
}

TEST_F(ReportFlags, ObjectThatCannotBeReadIsCounted) {
  codec::Json bad = WarmupObject("team", "bad", {});
  bad["spec"] = 5;
  server_.Put(kube::kCacheWarmups, bad);
  const Outcome outcome = WriteReport({"-o", "-"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.err, HasSubstr("1 object could not be read"));
  EXPECT_THAT(outcome.out, HasSubstr("CacheWarmup team/bad"));
}

}  // namespace
}  // namespace cachewarm::cli
