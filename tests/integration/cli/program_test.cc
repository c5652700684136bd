// SPDX-License-Identifier: Apache-2.0
// Runs the program cachewarm as a process: streams, environment, exit codes and signals.
#include "tests/fakes/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/fakes/await.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kInterruptedCode = 130;

class CliProgram : public ::testing::Test {
 protected:
  CliProgram() {
    folder_.Write("tree/inductor/ab/cabcd.py", "print(1)\n");
    folder_.Write("facts.yaml", "gpuType: cpu\ncpuClass: x86-64-v4/amd-25-17/5c0d9f21\n");
  }

  void Start(std::vector<std::string> words) {
    words.insert(words.begin(), fakes::BuiltProgram(CACHEWARM_CLI));
    program_ = std::make_unique<fakes::Program>(words, folder_.path());
  }
  int Run(const std::vector<std::string>& words) {
    Start(words);
    return program_->Wait().value_or(-1);
  }
  // Starts `script` below "run".
  void StartScript(const std::string& script) {
    Start({"run", "--store", folder_ / "bundles", "--dir", folder_ / "caches", "--node-facts",
           folder_ / "facts.yaml", "--", "/bin/sh", "-c", script});
  }
  std::string Bundle() const { return fmt::format("layout://{}/store/llama:v1", folder_.path()); }

  TempDir folder_;
  std::unique_ptr<fakes::Program> program_;
};

TEST_F(CliProgram, PrintsResultsToStdoutAndErrorsToStderr) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(program_->out(), HasSubstr("cachewarm "));
  EXPECT_EQ(program_->log(), "");
  EXPECT_EQ(Run({"nope"}), 2);
  EXPECT_EQ(program_->out(), "");
  EXPECT_THAT(program_->log(), HasSubstr("unknown verb \"nope\""));
}

TEST_F(CliProgram, PassesItsEnvironmentToTheCommandAndReturnsItsExitCode) {
  ::setenv("CACHEWARM_TEST_MARK", "a=b", 1);
  StartScript("echo \"<$CACHEWARM_TEST_MARK>\"; exit 7");
  EXPECT_EQ(program_->Wait(), 7) << program_->log();
  EXPECT_THAT(program_->out(), HasSubstr("<a=b>"));
}

TEST_F(CliProgram, CommandsKeepTheirCertificateAuthorities) {
  ::unsetenv("SSL_CERT_FILE");
  ::setenv("SSL_CERT_DIR", "/etc/pki", 1);
  StartScript("echo \"<${SSL_CERT_FILE-unset} $SSL_CERT_DIR>\"");
  EXPECT_EQ(program_->Wait(), 0) << program_->log();
  EXPECT_THAT(program_->out(), HasSubstr("<unset /etc/pki>"));
}

TEST_F(CliProgram, PrintsProgressOnlyToATerminal) {
  ASSERT_EQ(Run({"pack", folder_ / "tree", Bundle(), "--node-facts", folder_ / "facts.yaml"}), 0)
      << program_->log();
  EXPECT_EQ(Run({"verify", Bundle()}), 0);
  EXPECT_THAT(program_->log(), Not(HasSubstr("verifying")));
  fakes::Program on_terminal(
      {"/usr/bin/script", "-qec",
       fmt::format("{} verify {}", fakes::BuiltProgram(CACHEWARM_CLI), Bundle()), "/dev/null"},
      folder_.path());
  EXPECT_EQ(on_terminal.Wait(), 0);
  EXPECT_THAT(on_terminal.out(), HasSubstr("verifying "));
}

TEST_F(CliProgram, SignalInterruptsARequest) {
  for (const int signal : {SIGTERM, SIGINT}) {
    std::atomic<int> requests = 0;
    const fakes::RawServer silent([&](fakes::RawConnection& connection, int) {
      connection.ReadRequest();
      ++requests;
      connection.BlockUntilStop();
    });
    Start({"inspect", fmt::format("oci://127.0.0.1:{}/team/llama:v1", silent.port())});
    ASSERT_TRUE(fakes::Await([&] { return requests > 0; })) << program_->log();
    program_->Signal(signal);
    EXPECT_EQ(program_->Wait(), kInterruptedCode) << program_->log();
  }
}

TEST_F(CliProgram, IsAlsoAKubectlPlugin) {
  const std::filesystem::path program = fakes::BuiltProgram(CACHEWARM_CLI);
  const std::filesystem::path plugin = program.parent_path() / "kubectl-cachewarm";
  if (std::getenv("CACHEWARM_PROGRAMS") == nullptr) {
    EXPECT_EQ(std::filesystem::canonical(plugin), std::filesystem::canonical(program));
  }
}

}  // namespace
}  // namespace cachewarm::cli
