// SPDX-License-Identifier: Apache-2.0
// Runs the completion scripts in their shells.
#include <cstdlib>

#include "gmock/gmock.h"
#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CompletionTest : public ProgramFixture {
 protected:
  // Runs `script` and then `calls` in `shell`. Returns the output.
  std::string Complete(const std::string& shell, const std::string& script,
                       const std::string& calls) {
    temp_.Write("script", script + calls);
    const std::string command = fmt::format("{0} {1}/script > {1}/completed", shell, temp_.path());
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command
    return Read("completed");
  }
};

TEST_F(CompletionTest, ScriptForBashKnowsVerbsAndOptions) {
  const Outcome script = Run({"completion"});
  EXPECT_EQ(script.code, 0);
  EXPECT_EQ(script.out, Run({"completion", "bash"}).out);
  EXPECT_EQ(
      Complete("bash", script.out,
               "COMP_WORDS=(cachewarm ver); COMP_CWORD=1; _cachewarm; echo \"${COMPREPLY[@]}\"\n"
               "COMP_WORDS=(cachewarm pack --im); COMP_CWORD=2; _cachewarm\n"
               "echo \"${COMPREPLY[@]}\"\n"),
      "verify\n--image\n");
}

TEST_F(CompletionTest, ScriptForZshKnowsVerbsAndOptions) {
  const std::string completed = Complete("zsh -f",
                                         "compdef() { print -- $* }\n"
                                         "_describe() { print -l -- $argv[-2] ${(P)argv[-1]} }\n"
                                         "_files() { print files }\n" +
                                             Run({"completion", "zsh"}).out,
                                         "words=(cachewarm ''); CURRENT=2; _cachewarm\n"
                                         "words=(cachewarm verify --k); CURRENT=3; _cachewarm\n"
                                         "words=(cachewarm verify x); CURRENT=3; _cachewarm\n");
  EXPECT_THAT(completed, StartsWith("_cachewarm cachewarm kubectl-cachewarm\n"));
  for (const Verb& verb : AllVerbs()) {
    EXPECT_THAT(completed, HasSubstr(fmt::format("\n{}:{}\n", verb.name, verb.summary)));
  }
  EXPECT_THAT(completed, HasSubstr("\n--key:PEM file of public keys\n"));
  EXPECT_THAT(completed, Not(HasSubstr("\n--image:"))) << "an option of other verbs";
  EXPECT_THAT(completed, EndsWith("files\n"));
}

TEST_F(CompletionTest, ScriptForFishKnowsVerbsAndOptions) {
  const std::string completed =
      Complete("fish --no-config", Run({"completion", "fish"}).out,
               "complete -C 'cachewarm ver'\ncomplete -C 'cachewarm verify --ke'\n"
               "complete -C 'kubectl-cachewarm release -'\n");
  EXPECT_THAT(completed, StartsWith("verify\tRead a bundle and verify every byte\n"
                                    "--key\tPEM file of public keys\n"));
  EXPECT_THAT(completed, HasSubstr("-n\tnamespace of the pods\n"));
  EXPECT_THAT(completed, Not(HasSubstr("--image"))) << "an option of other verbs";
}

TEST_F(CompletionTest, UnknownShellIsAUsageError) {
  const Outcome unknown = Run({"completion", "tcsh"});
  EXPECT_EQ(unknown.code, kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("\"tcsh\" is not a known shell: expected bash, zsh or fish"));
  EXPECT_THAT(Run({"completion", "bash", "zsh"}).err, HasSubstr("completion takes [SHELL], but 2"));
}

}  // namespace
}  // namespace cachewarm::cli
