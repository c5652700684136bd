// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/verbs.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/base/clock.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs command lines of the program in this process, with a directory that holds the cache
// directory "tree" and the node facts "facts.json".
class ProgramFixture : public ::testing::Test {
 protected:
  ProgramFixture() {
    temp_.Write("tree/inductor/ab/cabcd.py", "print(1)\n");
    temp_.Write("facts.json", R"({"gpuType":"nvidia/h100-80gb-hbm3/sm_90",)"
                              R"("cpuClass":"x86-64-v3/intel-6-85/0123abcd"})");
  }

  Outcome Run(const std::vector<std::string>& words) {
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = is_terminal_,
                    .clock = clock_ == nullptr ? SystemClock() : *clock_,
                    .stop = stop_.get_token(),
                    .environment = environment_,
                    .out_is_terminal = out_is_terminal_};
    const int code = RunProgram(words, console);
    return {code, out.str(), err.str()};
  }
  // Packs "tree" as a bundle of the image layout "store".
  Outcome Pack(const std::string& tag) {
    return Run({"pack", temp_ / "tree", Bundle(tag), "--node-facts", temp_ / "facts.json"});
  }
  std::string Bundle(const std::string& tag) const {
    return fmt::format("layout://{}/store/llama:{}", temp_.path(), tag);
  }
  // Reads the file `name`; "" if there is none.
  std::string Read(const std::string& name) const {
    return fs::ReadFile(dir_, name, 1 << 20).value_or("");
  }
  static codec::Json Parsed(const Outcome& outcome) {
    const auto json = codec::ParseJson(outcome.out);
    EXPECT_TRUE(json.ok()) << outcome.out << outcome.err;
    return json.value_or(codec::Json::object());
  }

  std::map<std::string, std::string> environment_;
  bool is_terminal_ = false;      // standard error
  bool out_is_terminal_ = false;  // standard output
  std::stop_source stop_;
  const Clock* clock_ = nullptr;  // null: the system's
  TempDir temp_;
  fs::Dir dir_ = temp_.Open();
};

}  // namespace cachewarm::cli
