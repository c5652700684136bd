// SPDX-License-Identifier: Apache-2.0
#include "cli/run/interpreter.h"

#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Installations of Python in a temporary directory. No file in it can be executed.
class InterpreterTest : public ::testing::Test {
 protected:
  void Program(const std::string& path, const std::string& text =
                                            "\x7f"
                                            "ELF") {
    temp_.Write(path, text);
    std::filesystem::permissions(temp_ / path, std::filesystem::perms::owner_all);
  }
  void Install(const std::string& packages, const std::string& distribution) {
    std::filesystem::create_directories(temp_ / packages + "/" + distribution + ".dist-info");
  }
  // A virtual environment with torch.
  void MakeVenv(const std::string& path, const std::string& torch, const std::string& more = "") {
    Program(path + "/bin/python3");
    temp_.Write(path + "/pyvenv.cfg", "home = " + temp_.path() + "/usr/bin\n" + more);
    Install(path + "/lib/python3.11/site-packages", "torch-" + torch);
  }
  PlannedCommand Command(std::vector<std::string> words) {
    std::map<std::string, std::string> environment = {{"PATH", temp_ / "usr/bin"},
                                                      {"HOME", temp_ / "home"}};
    environment.insert(more_.begin(), more_.end());
    return {.words = std::move(words),
            .environment = std::move(environment),
            .directory = temp_ / "work"};
  }
  EngineVersions Engines(std::vector<std::string> words) {
    return FindEngines(Command(std::move(words)));
  }

  TempDir temp_;
  std::map<std::string, std::string> more_;
};

TEST_F(InterpreterTest, VersionsAreThoseOfTheVirtualEnvironmentOfAScript) {
  MakeVenv("venv", "2.15.0");
  Program("venv/bin/vllm", "#!" + temp_.path() + "/venv/bin/python3\nimport vllm\n");
  EXPECT_EQ(FindInterpreter(Command({temp_ / "venv/bin/vllm", "serve"})),
            temp_ / "venv/bin/python3");
  EXPECT_THAT(Engines({temp_ / "venv/bin/vllm", "serve"}), ElementsAre(Pair("torch", "2.15.0")));
}

TEST_F(InterpreterTest, CommandIsFoundThroughPathAndEnv) {
  MakeVenv("venv", "2.15.0");
  PlannedCommand command = Command({"env", "A=b", "python3", "serve.py"});
  EXPECT_THAT(FindEngines(command), IsEmpty());
  command.environment["PATH"] = (temp_ / "none") + ":" + (temp_ / "venv/bin");
  EXPECT_THAT(FindEngines(command), ElementsAre(Pair("torch", "2.15.0")));
}

TEST_F(InterpreterTest, LauncherIsSkipped) {
  MakeVenv("venv", "2.15.0");
  Program("usr/bin/numactl");
  EXPECT_THAT(Engines({"numactl", "-N", "0", temp_ / "venv/bin/python3", "-m", "vllm"}),
              ElementsAre(Pair("torch", "2.15.0")));
}

TEST_F(InterpreterTest, ShellScriptUsesPythonOfPath) {
  Program("usr/bin/sh");
  Program("usr/bin/python3");
  Install("usr/lib/python3.11/site-packages", "jax-0.10.2");
  Program("work/serve.sh", "#!/usr/bin/sh\nexec python3 serve.py\n");
  EXPECT_THAT(Engines({"./serve.sh"}), ElementsAre(Pair("jax", "0.10.2")));
}

TEST_F(InterpreterTest, SystemPackagesCountOnlyIfTheEnvironmentIncludesThem) {
  Program("usr/bin/python3.11");
  std::filesystem::create_symlink("python3.11", temp_ / "usr/bin/python3");
  Install("usr/lib/python3.11/site-packages", "triton-3.9.0");
  Install("usr/lib/python3.11/site-packages", "torch-2.13.0");
  Install("home/.local/lib/python3.11/site-packages", "vllm-0.32.0");
  MakeVenv("alone", "2.15.0", "include-system-site-packages = false\n");
  MakeVenv("both", "2.15.0", "include-system-site-packages = true\n");
  EXPECT_THAT(Engines({temp_ / "alone/bin/python3"}), ElementsAre(Pair("torch", "2.15.0")));
  EXPECT_THAT(
      Engines({temp_ / "both/bin/python3"}),
      ElementsAre(Pair("torch", "2.15.0"), Pair("triton", "3.9.0"), Pair("vllm", "0.32.0")));
  EXPECT_THAT(Engines({"python3"}), ElementsAre(Pair("torch", "2.13.0"), Pair("triton", "3.9.0"),
                                                Pair("vllm", "0.32.0")));
}

TEST_F(InterpreterTest, PythonPathComesFirstAndUserPackagesCanBeOff) {
  Program("usr/bin/python3");
  Install("usr/lib/python3.11/site-packages", "torch-2.13.0");
  Install("home/.local/lib/python3.11/site-packages", "vllm-0.32.0");
  Install("work/vendor", "torch-2.16.0");
  more_["PYTHONPATH"] = "vendor";
  more_["PYTHONNOUSERSITE"] = "1";
  EXPECT_THAT(Engines({"python3"}), ElementsAre(Pair("torch", "2.16.0")));
}

TEST_F(InterpreterTest, ShimOfPyenvIsFollowed) {
  Program("pyenv/shims/python3", "#!/usr/bin/env bash\nexec pyenv exec python3 \"$@\"\n");
  Program("usr/bin/bash");
  for (const std::string version : {"3.11.7", "3.13.1"}) {
    Program("pyenv/versions/" + version + "/bin/python3");
    Install("pyenv/versions/" + version + "/lib/python3.11/site-packages", "torch-" + version);
  }
  temp_.Write("pyenv/version", "3.11.7\n");
  const std::string shim = temp_ / "pyenv/shims/python3";
  EXPECT_THAT(Engines({shim}), ElementsAre(Pair("torch", "3.11.7")));
  more_["PYENV_VERSION"] = "3.13.1";
  EXPECT_THAT(Engines({shim}), ElementsAre(Pair("torch", "3.13.1")));
  more_["PYENV_VERSION"] = "../../../venv";
  EXPECT_THAT(Engines({shim}), IsEmpty());
}

TEST_F(InterpreterTest, TwoVersionsOfAnEngineGiveAVersionOfTheirOwn) {
  MakeVenv("venv", "2.15.0");
  Install("venv/lib/python3.11/site-packages", "torch-2.13.0");
  EXPECT_THAT(Engines({temp_ / "venv/bin/python3"}), ElementsAre(Pair("torch", "2.13.0|2.15.0")));
}

TEST_F(InterpreterTest, UntrustedFilesEndTheSearch) {
  Program("work/loop", "#!" + temp_.path() + "/work/loop\n");
  EXPECT_EQ(FindInterpreter(Command({"./loop"})), "");
  Program("work/none", "#!/nonexistent/python\n");
  EXPECT_EQ(FindInterpreter(Command({"./none"})), "");
  ASSERT_EQ(::mkfifo((temp_ / "work/fifo").c_str(), 0700), 0);
  EXPECT_EQ(FindInterpreter(Command({"./fifo"})), "") << "a FIFO would block a reader";
  MakeVenv("venv", "2.15.0");
  std::filesystem::remove(temp_ / "venv/pyvenv.cfg");
  ASSERT_EQ(::mkfifo((temp_ / "venv/pyvenv.cfg").c_str(), 0700), 0);
  EXPECT_EQ(FindInterpreter(Command({temp_ / "venv/bin/python3"})), temp_ / "venv/bin/python3");
  EXPECT_THAT(Engines({temp_ / "venv/bin/python3"}), ElementsAre(Pair("torch", "2.15.0")));
  EXPECT_EQ(FindInterpreter(Command({""})), "");
  EXPECT_EQ(FindInterpreter(Command({})), "");
}

}  // namespace
}  // namespace cachewarm::cli
