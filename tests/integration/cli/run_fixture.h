// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/await.h"
#include "tests/fakes/program.h"
#include "tests/fakes/temp_dir.h"

// Starts "cachewarm run" as a program.
namespace cachewarm::cli {

using Words = std::vector<std::string>;

inline constexpr char kAmd[] = R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})";
inline constexpr char kIntel[] = R"({"gpuType":"cpu","cpuClass":"x86-64-v3/intel-6-85/0123abcd"})";

// "Compiles" a file unless the cache has it, and reports which of both it was.
inline constexpr char kCompile[] =
    "f=$TORCHINDUCTOR_CACHE_DIR/ab/cabcd.py; mkdir -p ${f%/*}; "
    "if [ -e $f ]; then echo warm; else echo cold; echo 'print(1)' > $f; fi; ";
inline constexpr char kServe[] = "echo $$ > $1/pid; while :; do sleep 0.01; done";

// Waits longer than the other tests: the background thread has the lowest priority.
template <typename Condition>
bool Await(Condition condition) {
  return fakes::Await(condition, std::chrono::seconds(120));
}

// One start of the program; its files are in a folder of its own.
struct Start {
  explicit Start(Words words)
      : program(
            [&] {
              words.insert(words.begin(), fakes::BuiltProgram(CACHEWARM_CLI));
              return words;
            }(),
            folder.path()) {}
  TempDir folder;
  fakes::Program program;
};

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    temp_.Write("amd.json", kAmd);
    temp_.Write("intel.json", kIntel);
  }
  // Words of a call that runs `script`, whose $1 is the folder of the test.
  Words Call(const Words& options, const std::string& script, const std::string& dir = "cache",
             const std::string& facts = "amd.json") {
    Words words = {"run", "--store", store_, "--dir", temp_ / dir, "--node-facts", temp_ / facts};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script, "sh", temp_.path()});
    return words;
  }
  std::string Read(const std::string& name) const {
    return fs::ReadFile(temp_.Open(), name, 1 << 20).value_or("");
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(temp_ / name); }
  // Runs to its end and returns the standard output.
  std::string Output(const Words& words, int code = 0) {
    Start start(words);
    EXPECT_EQ(start.program.Wait(), code) << start.program.log();
    return start.program.out();
  }
  pid_t AwaitPid() const {
    EXPECT_TRUE(Await([&] { return Read("pid").ends_with('\n'); }));
    return std::atoi(Read("pid").c_str());
  }

  TempDir temp_;
  std::string store_ = temp_ / "store";
};

}  // namespace cachewarm::cli
