// SPDX-License-Identifier: Apache-2.0
// Runs the completion scripts in their shells.
#include <cstdlib>

#include "tests/unit/cli/program_fixture.h"

namespace cachewarm::cli {
namespace {

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
  EXPECT_EQ(
      Complete("bash", script.out,
               "COMP_WORDS=(cachewarm ver); COMP_CWORD=1; _cachewarm; echo \"${COMPREPLY[@]}\"\n"
               "COMP_WORDS=(cachewarm pack --im); COMP_CWORD=2; _cachewarm\n"
               "echo \"${COMPREPLY[@]}\"\n"),
      "verify\n--image\n");
}

}  // namespace
}  // namespace cachewarm::cli
