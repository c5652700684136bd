// SPDX-License-Identifier: Apache-2.0
// Tests every option and operand of "cachewarm lint", from the command line to its result.
#include <unistd.h>

#include "gmock/gmock.h"
#include "lib/api/cache_warmup.h"
#include "lib/codec/json_path.h"
#include "lib/codec/yaml.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/object.h"
#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr char kBroken[] =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llama, namespace: team}\n"
    "spec: {template: {spec: {containers: [{name: c, image: 'vllm:1', "
    "startupProbe: {failureThreshold: 60}, env: [{name: VLLM_API_KEY, value: a}]}]}}}\n";

class LintFlags : public ClusterFixture {
 protected:
  Outcome Lint(Words words) {
    words.insert(words.begin(), "lint");
    return Run(words);
  }
  void PutYaml(const std::string& text) {
    const auto object = codec::ParseYaml(text);
    ASSERT_TRUE(object.ok()) << object.status();
    const kube::Resource* resource = kube::FindResource(codec::TextAt(*object, {"apiVersion"}),
                                                        codec::TextAt(*object, {"kind"}));
    ASSERT_NE(resource, nullptr);
    server_.Put(*resource, *object);
  }
  // A CacheWarmup of the Deployment llama that has measured this median.
  void PutWarmup(double cold_seconds) {
    api::WarmupSpec spec;
    spec.workload_ref = {.api_version = "apps/v1", .kind = "Deployment", .name = "llama"};
    api::WarmupStatus status;
    status.starts.cold_median_seconds = cold_seconds;
    server_.Put(kube::kCacheWarmups, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                      {"kind", "CacheWarmup"},
                                      {"metadata", {{"namespace", "team"}, {"name", "w"}}},
                                      {"spec", api::EncodeSpec(spec)},
                                      {"status", api::EncodeStatus(status)}});
  }
};

TEST_F(LintFlags, KindAndNameSelectTheObject) {
  PutYaml(kBroken);
  for (const char* name : {"deploy/llama", "deployment/llama", "Deployments.apps/llama"}) {
    const Outcome outcome = Lint({name});
    EXPECT_EQ(outcome.code, kFailed) << name << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("error: Deployment team/llama: VLLM_API_KEY is set"));
    EXPECT_THAT(outcome.out, HasSubstr("spec.template.spec.containers[0].env[VLLM_API_KEY]"));
    EXPECT_EQ(outcome.err, "pod templates: 1, errors: 1, warnings: 0\n");
  }
  EXPECT_EQ(Lint({"deploy/absent"}).code, kNotFound);
  for (const char* wrong : {"llama", "deploy/", "deplo/llama", "a/b/c"}) {
    EXPECT_EQ(Lint({wrong}).code, kUsage) << wrong;
  }
  EXPECT_EQ(Lint({}).code, kUsage);
  EXPECT_THAT(Lint({"deplyment/x"}).err, HasSubstr("unknown kind"));
}

TEST_F(LintFlags, CacheWarmupSelectsItsWorkload) {
  PutYaml(kBroken);
  PutWarmup(870);
  const Outcome outcome = Lint({"cw/w"});
  EXPECT_THAT(outcome.out, HasSubstr("Deployment team/llama: VLLM_API_KEY"));
  EXPECT_THAT(outcome.out, HasSubstr("870 s (median of the CacheWarmup)"));
}

TEST_F(LintFlags, ObjectWithoutPodTemplateIsRefused) {
  PutYaml(
      "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\n"
      "metadata: {name: llama, namespace: team}\nspec: {predictor: {model: {}}}\n");
  const Outcome outcome = Lint({"isvc/llama"});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("InferenceService team/llama has no pod template"));
}

TEST_F(LintFlags, NamespaceSelectsTheObject) {
  PutYaml(kBroken);
  EXPECT_EQ(Lint({"deploy/llama", "-n", "other"}).code, kNotFound);
  EXPECT_EQ(Lint({"deploy/llama", "--context", "two", "--namespace", "team"}).code, kFailed);
}

TEST_F(LintFlags, ServicesOfTheNamespaceAreRead) {
  PutYaml(kBroken);
  PutYaml("apiVersion: v1\nkind: Service\nmetadata: {name: vllm, namespace: team}\n");
  PutYaml("apiVersion: v1\nkind: Service\nmetadata: {name: sglang, namespace: other}\n");
  const Outcome outcome = Lint({"deploy/llama", "--skip", "api-key-environment"});
  EXPECT_THAT(outcome.out, HasSubstr("VLLM_PORT=tcp://..."));
  EXPECT_THAT(outcome.out, Not(HasSubstr("SGLANG_PORT")));
}

TEST_F(LintFlags, MissingRightsAreNotedAndTheRestIsChecked) {
  PutYaml(kBroken);
  server_.Intercept([](const kube::Request& request) {
    const bool is_list =
        request.path.ends_with("/services") || request.path.ends_with("/cachewarmups");
    return is_list ? kube::ToStatus({.code = 403, .reason = "Forbidden", .message = "no list"})
                   : absl::OkStatus();
  });
  const Outcome outcome = Lint({"deploy/llama"});
  EXPECT_THAT(outcome.out, HasSubstr("VLLM_API_KEY"));
  EXPECT_THAT(outcome.err, HasSubstr("the rule service-environment is not checked"));
  EXPECT_THAT(outcome.err, HasSubstr("the cold start is assumed"));
}

TEST_F(LintFlags, FilenameReadsManifestsAndStandardInput) {
  environment_.clear();  // needs no cluster
  temp_.Write("a.yaml", kBroken);
  temp_.Write("b.yaml", "kind: Service\nmetadata: {name: vllm}\n");
  const Outcome outcome = Lint({"-f", temp_ / "a.yaml", "--filename", temp_ / "b.yaml"});
  EXPECT_EQ(outcome.code, kFailed) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("VLLM_API_KEY"));
  EXPECT_THAT(outcome.out, HasSubstr("service-environment"));

  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = kBroken;
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  const int standard_input = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  EXPECT_THAT(Lint({"-f", "-"}).out, HasSubstr("VLLM_API_KEY"));
  ::dup2(standard_input, STDIN_FILENO);
  ::close(standard_input);
  ::close(ends[0]);
}

TEST_F(LintFlags, FilesThatCannotBeReadAreNamed) {
  temp_.Write("bad.yaml", "kind: [");
  temp_.Write("values.yaml", "image: x\n");
  for (const char* name : {"bad.yaml", "values.yaml", "absent.yaml"}) {
    const Outcome outcome = Lint({"-f", temp_ / name});
    EXPECT_NE(outcome.code, kOk) << name;
    EXPECT_THAT(outcome.err, HasSubstr(name));
    EXPECT_EQ(outcome.out, "") << name;
  }
}

TEST_F(LintFlags, OutputIsJsonOrYaml) {
  temp_.Write("a.yaml", kBroken);
  const Json json = Parsed(Lint({"-f", temp_ / "a.yaml", "-o", "json"}));
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["warnings"], 0);
  EXPECT_EQ(json["podTemplates"], 1);
  ASSERT_EQ(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["rule"], "api-key-environment");
  EXPECT_EQ(json["findings"][0]["namespace"], "team");
  const auto yaml = codec::ParseYaml(Lint({"-f", temp_ / "a.yaml", "--output", "yaml"}).out);
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  EXPECT_EQ(*yaml, json);
  EXPECT_EQ(Lint({"-f", temp_ / "a.yaml", "-o", "wide"}).code, kUsage);
}

TEST_F(LintFlags, SkipLeavesOutARule) {
  temp_.Write("a.yaml", kBroken);
  EXPECT_EQ(Lint({"-f", temp_ / "a.yaml", "--skip", "api-key-environment"}).code, kOk);
  const Outcome unknown = Lint({"-f", temp_ / "a.yaml", "--skip", "api-key-environmnt"});
  EXPECT_EQ(unknown.code, kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean api-key-environment?"));
}

TEST_F(LintFlags, FailOnDecidesTheExitCode) {
  temp_.Write("error.yaml", kBroken);
  temp_.Write("warning.yaml",
              "kind: Pod\nmetadata: {name: a}\n"
              "spec: {containers: [{name: c, image: vllm}]}\n");
  const auto code = [&](const char* file, const char* severity) {
    return Lint({"-f", temp_ / file, "--fail-on", severity}).code;
  };
  EXPECT_EQ(code("error.yaml", "warning"), kFailed);
  EXPECT_EQ(code("error.yaml", "error"), kFailed);
  EXPECT_EQ(code("error.yaml", "never"), kOk);
  EXPECT_EQ(code("warning.yaml", "warning"), kFailed);
  EXPECT_EQ(code("warning.yaml", "error"), kOk);
  EXPECT_EQ(code("warning.yaml", "info"), kUsage);
}

TEST_F(LintFlags, ColdStartIsComparedWithProbes) {
  temp_.Write("a.yaml", kBroken);
  EXPECT_THAT(Lint({"-f", temp_ / "a.yaml", "--cold-start", "601"}).out, HasSubstr("short-probe"));
  EXPECT_THAT(Lint({"-f", temp_ / "a.yaml", "--cold-start", "600"}).out,
              Not(HasSubstr("short-probe")));
  EXPECT_EQ(Lint({"-f", temp_ / "a.yaml", "--cold-start", "0"}).code, kUsage);
}

TEST_F(LintFlags, RulesAreListed) {
  environment_.clear();
  const Outcome table = Lint({"--rules"});
  EXPECT_EQ(table.code, kOk);
  EXPECT_THAT(table.out, HasSubstr("aiter-jit-dir            error      ROCm/aiter#3635"));
  EXPECT_THAT(Parsed(Lint({"--rules", "-o", "json"})).dump(), HasSubstr("\"looksAt\""));
}

TEST_F(LintFlags, ColoursAreForTerminalsWithoutNoColor) {
  temp_.Write("a.yaml", kBroken);
  const Words words = {"-f", temp_ / "a.yaml"};
  EXPECT_THAT(Lint(words).out, Not(HasSubstr("\x1b[")));
  out_is_terminal_ = true;
  EXPECT_THAT(Lint(words).out, HasSubstr("\x1b[31merror\x1b[0m: "));
  environment_["NO_COLOR"] = "1";
  EXPECT_THAT(Lint(words).out, Not(HasSubstr("\x1b[")));
  environment_ = {{"TERM", "dumb"}};
  EXPECT_THAT(Lint(words).out, Not(HasSubstr("\x1b[")));
}

TEST_F(LintFlags, OptionsOfTheClusterSelectIt) {
  PutYaml(kBroken);
  // --kubeconfig, --context, --cluster, --user, --as, --as-group
  ExpectClusterOptions({"lint", "deploy/llama", "-n", "team", "--fail-on", "never"}, kOk);
}

}  // namespace
}  // namespace cachewarm::cli
