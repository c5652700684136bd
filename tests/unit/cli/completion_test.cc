// SPDX-License-Identifier: Apache-2.0
// Runs the completion scripts in their shells.
#include <cstdlib>
#include <filesystem>

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
  EXPECT_THAT(completed, HasSubstr("-n\tnamespace\n"));
  EXPECT_THAT(completed, Not(HasSubstr("--image"))) << "an option of other verbs";
}

// A program whose output names its arguments, found before others of its name.
class CompletionOfNames : public CompletionTest {
 protected:
  CompletionOfNames() {
    temp_.Write("bin/cachewarm",
                "#!/bin/sh\ncase \"$*\" in\n"
                "  'status -o name -n team' | 'status -o name --namespace team')\n    echo "
                "cachewarmup.cachewarm.io/llama\n"
                "    echo cachewarmup.cachewarm.io/qwen ;;\n"
                "  'release --all --dry-run -o name --context two') echo pod/llama-0 ;;\n"
                "  'caches -o name') printf 'triton\\ntorch\\nvllm\\n' ;;\n"
                "  *) echo 'error: no cluster' >&2 ;;\n"
                "esac\n");
    std::filesystem::permissions(temp_ / "bin/cachewarm", std::filesystem::perms::owner_all);
  }
  std::string Names(const std::string& shell, const std::string& stubs, const std::string& calls) {
    const std::string program = shell.substr(0, shell.find(' '));
    const std::string path = program == "fish"
                                 ? fmt::format("set -x PATH {}/bin $PATH\n", temp_.path())
                                 : fmt::format("PATH={}/bin:$PATH\n", temp_.path());
    return Complete(shell, path + stubs + Run({"completion", program}).out, calls);
  }
};

TEST_F(CompletionOfNames, AreCompletedInBash) {
  EXPECT_EQ(Names("bash", "",
                  "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cachewarm\n"
                  "  echo \"${COMPREPLY[@]}\"; }\n"
                  "try cachewarm status -n team ''\n"
                  "try cachewarm status --namespace = team q\n"
                  "try cachewarm status -n team l\n"
                  "try cachewarm lint -n team cachewarmup.cachewarm.io/q\n"
                  "try cachewarm release --context two ''\n"
                  "try cachewarm caches t\n"
                  "try cachewarm status ''\n"),
            "llama qwen\nqwen\nllama\ncachewarmup.cachewarm.io/qwen\nllama-0\ntriton torch\n\n");
}

TEST_F(CompletionOfNames, AreCompletedInZsh) {
  EXPECT_EQ(Names("zsh -f", "compdef() { }\ncompadd() { print -- ${argv[2,-1]} }\n",
                  "words=(cachewarm status -n team ''); CURRENT=5; _cachewarm\n"
                  "words=(cachewarm lint -n team ''); CURRENT=5; _cachewarm\n"
                  "words=(cachewarm release --context two ''); CURRENT=5; _cachewarm\n"
                  "words=(cachewarm caches ''); CURRENT=3; _cachewarm\n"),
            "llama qwen\ncachewarmup.cachewarm.io/llama cachewarmup.cachewarm.io/qwen\nllama-0\n"
            "triton torch vllm\n");
}

TEST_F(CompletionOfNames, AreCompletedInFish) {
  EXPECT_EQ(Names("fish --no-config", "",
                  "complete -C 'cachewarm status -n team '\n"
                  "complete -C 'cachewarm lint -n team '\n"
                  "complete -C 'cachewarm release --context two '\n"
                  "complete -C 'cachewarm caches t'\n"),
            "llama\nqwen\ncachewarmup.cachewarm.io/llama\ncachewarmup.cachewarm.io/qwen\nllama-0\n"
            "torch\ntriton\n");
}

TEST_F(CompletionTest, UnknownShellIsAUsageError) {
  const Outcome unknown = Run({"completion", "tcsh"});
  EXPECT_EQ(unknown.code, kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("\"tcsh\" is not a known shell: expected bash, zsh or fish"));
  EXPECT_THAT(Run({"completion", "bash", "zsh"}).err, HasSubstr("completion takes [SHELL], but 2"));
}

}  // namespace
}  // namespace cachewarm::cli
