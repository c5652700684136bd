// SPDX-License-Identifier: Apache-2.0
// Tests the options and operands of the verbs that read and write bundles, except those of stores
// (store_flags_test.cc), and the environment variables that they read.
#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "lib/fingerprint/key.h"
#include "tests/fakes/noise.h"
#include "tests/unit/cli/program_fixture.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Words = std::vector<std::string>;

class BundleFlags : public ProgramFixture {
 protected:
  BundleFlags() {
    temp_.Write("key.pem", bundle::kSigner);
    temp_.Write("key.pub", bundle::kSignerPublic);
    temp_.Write("other.pub", bundle::kOtherSignerPublic);
    temp_.Write("other.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})");
  }

  std::string Copy(const std::string& name) const {
    return fmt::format("layout://{}/{}/llama", temp_.path(), name);
  }
  // Calls `verb` with the bundle :k-1 of the layout "store".
  Outcome Call(const std::string& verb, const Words& flags) {
    const std::map<std::string, Words> operands = {{"pack", {temp_ / "tree", Bundle("k-1")}},
                                                   {"unpack", {Bundle("k-1"), temp_ / "out"}},
                                                   {"push", {Bundle("k-1"), Copy("pushed")}},
                                                   {"pull", {Bundle("k-1"), Copy("pulled")}},
                                                   {"sign", {Bundle("k-1")}},
                                                   {"verify", {Bundle("k-1")}},
                                                   {"inspect", {Bundle("k-1")}}};
    Words words = {verb};
    words.insert(words.end(), operands.at(verb).begin(), operands.at(verb).end());
    words.insert(words.end(), flags.begin(), flags.end());
    return Run(words);
  }
  // Runs `script` below "run" with the store "bundles"; the script's $1 is the file "result".
  Outcome RunScript(const std::string& script, const Words& flags) {
    Words words = {"run", "--store", temp_ / "bundles"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script, "sh", temp_ / "result"});
    return Run(words);
  }
};

// A command that compiles one file if it is missing.
constexpr char kCompile[] =
    "f=$TORCHINDUCTOR_CACHE_DIR/ab/cabcd.py; "
    "if [ -e $f ]; then echo warm > $1; exit; fi; "
    "echo cold > $1; /bin/mkdir -p ${f%/*}; echo 'print(1)' > $f";
constexpr char kPrintDirectory[] = "echo $TORCHINDUCTOR_CACHE_DIR > $1";

// A flag, and the factor of the key in "inspect --json" that it sets.
struct MachineFlagCase {
  std::string name;
  Words flags;
  std::string factor;
  Json value;
};

class MachineFlag : public BundleFlags,
                    public ::testing::WithParamInterface<std::tuple<std::string, MachineFlagCase>> {
 protected:
  // The factors of the key of the only bundle that the verb publishes with these flags.
  Json Factors(const std::string& verb, const Words& flags) {
    std::filesystem::remove_all(temp_ / "store");
    std::filesystem::remove_all(temp_ / "bundles");
    const std::string store = verb == "pack" ? "store/llama" : "bundles/run";
    const Outcome published = verb == "pack" ? Call("pack", flags) : RunScript(kCompile, [&] {
      Words all = {"--dir", temp_ / ("run" + std::to_string(++runs_))};
      all.insert(all.end(), flags.begin(), flags.end());
      return all;
    }());
    EXPECT_EQ(published.code, 0) << published.err;
    const auto index = codec::ParseJson(Read(store + "/index.json"));
    EXPECT_TRUE(index.ok());
    const std::string digest = (*index)["manifests"][0]["digest"];
    return Parsed(
        Run({"inspect", fmt::format("layout://{}/{}@{}", temp_.path(), store, digest), "--json"}));
  }
  int runs_ = 0;
};

TEST_P(MachineFlag, IsAFactorOfTheKey) {
  const auto& [verb, flag] = GetParam();
  Words flags = flag.flags;
  if (flag.factor != "gpuType") {
    flags.insert(flags.end(), {"--node-facts", temp_ / "facts.json"});
  } else {
    flags.back() = temp_ / flags.back();
  }
  const Json with = Factors(verb, flags);
  EXPECT_EQ(with["factors"][flag.factor], flag.value) << with.dump();
  const Json without = Factors(verb, {"--node-facts", temp_ / "facts.json"});
  EXPECT_NE(without["factors"][flag.factor], flag.value) << without.dump();
  EXPECT_NE(without["key"], with["key"]);
}

INSTANTIATE_TEST_SUITE_P(
    All, MachineFlag,
    ::testing::Combine(
        ::testing::Values("pack", "run"),
        ::testing::Values(
            MachineFlagCase{"image", {"--image", "registry/llama:1"}, "image", "registry/llama:1"},
            MachineFlagCase{"container", {"--container", "server"}, "container", "server"},
            MachineFlagCase{"devices", {"--devices", "3"}, "devices", "3"},
            MachineFlagCase{"node_facts", {"--node-facts", "other.json"}, "gpuType", "cpu"})),
    [](const auto& each) { return std::get<0>(each.param) + "_" + std::get<1>(each.param).name; });

struct JsonCase {
  std::string verb;
  Words flags;
  std::vector<std::string> fields;
};

class JsonFlag : public BundleFlags, public ::testing::WithParamInterface<JsonCase> {};

TEST_P(JsonFlag, PrintsOneObjectInsteadOfText) {
  ASSERT_EQ(Pack("k-1").code, 0);
  Words flags;
  for (const std::string& word : GetParam().flags) {
    flags.push_back(word == "KEY" ? temp_ / "key.pem" : word);
  }
  const Outcome text = Call(GetParam().verb, flags);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_FALSE(codec::ParseJson(text.out).ok()) << text.out;
  std::filesystem::remove_all(temp_ / "out");
  flags.emplace_back("--json");
  const Outcome json = Call(GetParam().verb, flags);
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.err, "");
  const Json parsed = Parsed(json);
  for (const std::string& field : GetParam().fields) {
    EXPECT_TRUE(parsed.contains(field)) << field << json.out;
  }
  EXPECT_THAT(std::string(parsed["digest"]), HasSubstr("sha256:"));
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, JsonFlag,
    ::testing::Values(JsonCase{"pack", {}, {"bundle", "files", "bytes", "rawBytes", "leftBehind"}},
                      JsonCase{"unpack", {}, {"directory", "files", "bytes"}},
                      JsonCase{"push", {}, {"bundle", "copiedBytes", "presentBytes"}},
                      JsonCase{"pull", {}, {"bundle", "copiedBytes", "presentBytes"}},
                      JsonCase{"sign", {"--key", "KEY"}, {"bundle", "added"}},
                      JsonCase{"verify", {}, {"files", "intact", "signed"}},
                      JsonCase{"inspect", {}, {"key", "factors", "requires", "caches"}}),
    [](const auto& each) { return each.param.verb; });

class KeyFlag : public BundleFlags, public ::testing::WithParamInterface<std::string> {};

TEST_P(KeyFlag, RejectsABundleThatTheKeyDidNotSign) {
  ASSERT_EQ(Pack("k-1").code, 0);
  ASSERT_EQ(Call("sign", {"--key", temp_ / "key.pem"}).code, 0);
  const Outcome other = Call(GetParam(), {"--key", temp_ / "other.pub"});
  EXPECT_EQ(other.code, kDamaged);
  const Outcome signer = Call(GetParam(), {"--key", temp_ / "key.pub"});
  EXPECT_EQ(signer.code, kOk) << signer.err;
}

INSTANTIATE_TEST_SUITE_P(Verbs, KeyFlag, ::testing::Values("unpack", "push", "pull", "verify"),
                         [](const auto& each) { return each.param; });

TEST_F(BundleFlags, SignatureIsMadeWithTheKeyOfSign) {
  ASSERT_EQ(Pack("k-1").code, 0);
  EXPECT_EQ(Call("verify", {"--key", temp_ / "key.pub"}).code, kDamaged);
  ASSERT_EQ(Call("sign", {"--key", temp_ / "key.pem"}).code, 0);
  EXPECT_EQ(Call("verify", {"--key", temp_ / "key.pub"}).code, kOk);
}

class QuietFlag : public BundleFlags, public ::testing::WithParamInterface<std::string> {};

TEST_P(QuietFlag, HidesProgressOnATerminal) {
  ASSERT_EQ(Pack("k-1").code, 0);
  is_terminal_ = true;
  const std::string progress = GetParam() == "verify" ? "verifying " : "fetching ";
  EXPECT_THAT(Call(GetParam(), {}).err, HasSubstr(progress));
  std::filesystem::remove_all(temp_ / "out");
  const Outcome quiet = Call(GetParam(), {"--quiet"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_THAT(quiet.err, Not(HasSubstr(progress)));
}

INSTANTIATE_TEST_SUITE_P(Verbs, QuietFlag, ::testing::Values("unpack", "verify"),
                         [](const auto& each) { return each.param; });

TEST_F(BundleFlags, LimitRatioAppliesAbove64MiB) {
  // About 65 times larger than its layer.
  std::string wide = fakes::Noise(1U << 20U, 1);
  wide.resize(67U << 20U, '\0');
  temp_.Write("tree/inductor/ab/cwide.py", wide);
  ASSERT_EQ(Pack("k-1").code, 0);
  for (const char* verb : {"verify", "unpack"}) {
    const Outcome refused = Call(verb, {"--limit-ratio", "20"});
    EXPECT_EQ(refused.code, kFailed) << verb;
    EXPECT_THAT(refused.err, HasSubstr("limits.ratio")) << verb;
  }
  const Outcome accepted = Call("verify", {"--limit-ratio", "100"});
  EXPECT_EQ(accepted.code, kOk) << accepted.err;
}

TEST_F(BundleFlags, EntriesListsFiles) {
  ASSERT_EQ(Pack("k-1").code, 0);
  const std::string file = "inductor/ab/cabcd.py";
  EXPECT_THAT(Call("inspect", {}).out, Not(HasSubstr(file)));
  EXPECT_THAT(Call("inspect", {"--entries"}).out, HasSubstr(file));
  EXPECT_FALSE(Parsed(Call("inspect", {"--json"})).contains("entries"));
  const Json listed = Parsed(Call("inspect", {"--json", "--entries"}));
  ASSERT_EQ(listed["entries"].size(), 1U);
  EXPECT_EQ(listed["entries"][0]["path"], file);
  EXPECT_EQ(listed["entries"][0]["size"], 9);
}

TEST_F(BundleFlags, OperandsAreReadAndWritten) {
  const Outcome packed = Call("pack", {});
  ASSERT_EQ(packed.code, kOk) << packed.err;
  EXPECT_TRUE(std::filesystem::exists(temp_ / "store/llama/index.json"));
  EXPECT_EQ(Call("unpack", {}).code, kOk);
  EXPECT_EQ(Read("out/inductor/ab/cabcd.py"), "print(1)\n");
  EXPECT_EQ(Call("push", {}).code, kOk);
  EXPECT_TRUE(std::filesystem::exists(temp_ / "pushed/llama/index.json"));
  EXPECT_EQ(Call("pull", {}).code, kOk);
  EXPECT_TRUE(std::filesystem::exists(temp_ / "pulled/llama/index.json"));
  std::filesystem::remove_all(temp_ / "store");
  for (const char* verb : {"unpack", "push", "pull", "verify", "inspect"}) {
    EXPECT_EQ(Call(verb, {}).code, kNotFound) << verb;
  }
  EXPECT_EQ(Call("sign", {"--key", temp_ / "key.pem"}).code, kNotFound);
}

TEST_F(BundleFlags, DigestSelectsABundle) {
  const Outcome first = Pack("k-1");
  temp_.Write("tree/inductor/ab/cabce.py", "print(2)\n");
  ASSERT_EQ(Pack("k-1").code, 0);
  const std::string name = first.out.substr(0, first.out.find('\n'));
  EXPECT_THAT(name, HasSubstr("@sha256:"));
  EXPECT_EQ(Parsed(Run({"verify", name, "--json"}))["files"], 1);
  EXPECT_EQ(Parsed(Run({"verify", Bundle("k-1"), "--json"}))["files"], 2);
}

TEST_F(BundleFlags, StoreAndNameSelectTheRepositoryOfRun) {
  const auto run = [&](const std::string& directory, const Words& flags) {
    Words all = {"--dir", temp_ / directory, "--node-facts", temp_ / "facts.json"};
    all.insert(all.end(), flags.begin(), flags.end());
    EXPECT_EQ(RunScript(kCompile, all).code, 0);
    return Read("result");
  };
  EXPECT_EQ(run("one", {"--name", "llama"}), "cold\n");
  EXPECT_TRUE(std::filesystem::exists(temp_ / "bundles/llama/index.json"));
  EXPECT_EQ(run("two", {"--name", "other"}), "cold\n");
  EXPECT_EQ(run("three", {"--name", "llama"}), "warm\n");
  EXPECT_EQ(run("four", {}), "cold\n");
  EXPECT_TRUE(std::filesystem::exists(temp_ / "bundles/run/index.json")) << "the default name";
}

TEST_F(BundleFlags, DirIsTheCacheDirectory) {
  environment_["HOME"] = temp_ / "home";
  ASSERT_EQ(RunScript(kPrintDirectory, {"--dir", temp_ / "caches"}).code, 0);
  EXPECT_EQ(Read("result"), temp_ / "caches/inductor\n");
  EXPECT_TRUE(std::filesystem::is_directory(temp_ / "caches/inductor"));
}

TEST_F(BundleFlags, CacheDirectoryIsBelowHome) {
  EXPECT_THAT(RunScript(kPrintDirectory, {}).err, HasSubstr("--dir: required"));
  environment_["HOME"] = temp_ / "home";
  ASSERT_EQ(RunScript(kPrintDirectory, {"--name", "llama"}).code, 0);
  EXPECT_THAT(Read("result"),
              MatchesRegex(temp_ / "home/.cache/cachewarm/llama/[0-9a-f]{8}/inductor\n"));
}

TEST_F(BundleFlags, CacheDirectoryIsBelowXdgCacheHome) {
  environment_["HOME"] = temp_ / "home";
  environment_["XDG_CACHE_HOME"] = temp_ / "xdg";
  ASSERT_EQ(RunScript(kPrintDirectory, {}).code, 0);
  EXPECT_THAT(Read("result"), MatchesRegex(temp_ / "xdg/cachewarm/run/[0-9a-f]{8}/inductor\n"));
}

TEST_F(BundleFlags, VariablesThatAreSetReachTheCommandUnchanged) {
  environment_["TORCHINDUCTOR_CACHE_DIR"] = "/elsewhere";
  ASSERT_EQ(RunScript(kPrintDirectory, {"--dir", temp_ / "caches"}).code, 0);
  EXPECT_EQ(Read("result"), "/elsewhere\n");
}

TEST_F(BundleFlags, KeyOfRunRejectsUnsignedBundles) {
  const auto run = [&](const std::string& directory, Words flags) {
    flags.insert(flags.end(), {"--dir", temp_ / directory, "--node-facts", temp_ / "facts.json"});
    EXPECT_EQ(RunScript(kCompile, flags).code, 0);
    return Read("result");
  };
  EXPECT_EQ(run("one", {}), "cold\n");
  EXPECT_EQ(run("two", {"--key", temp_ / "key.pub"}), "cold\n") << "it is not signed";
  EXPECT_EQ(run("three", {"--key", temp_ / "key.pub", "--sign-key", temp_ / "key.pem"}), "cold\n");
  EXPECT_EQ(run("four", {"--key", temp_ / "key.pub"}), "warm\n");
  EXPECT_EQ(run("five", {"--key", temp_ / "other.pub"}), "cold\n") << "another key signed it";
}

TEST_F(BundleFlags, CacheLimitsTheVariablesAndThePublishedFiles) {
  const std::string script =
      "echo \"${TRITON_CACHE_DIR##*/} $AITER_JIT_DIR $TORCHINDUCTOR_CACHE_DIR.\" > $1; "
      "cd $TRITON_CACHE_DIR/..; /bin/mkdir -p triton/KEY inductor/ab; "
      "echo {} > triton/KEY/__grp__k.json; echo 'print(1)' > inductor/ab/cabcd.py";
  const Words flags = {"--dir", temp_ / "caches", "--node-facts", temp_ / "facts.json"};
  const auto with = [&flags](Words more) {
    more.insert(more.end(), flags.begin(), flags.end());
    return more;
  };
  const Outcome limited = RunScript(script, with({"--cache", "triton", "--cache", "triton"}));
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_EQ(Read("result"), "triton  .\n");
  EXPECT_THAT(limited.err, HasSubstr("published 1 files"));
  const Outcome opted_in = RunScript(script, with({"--cache", "triton", "--cache", "aiter"}));
  EXPECT_EQ(Read("result"), "triton " + temp_ / "caches/aiter" + " .\n") << opted_in.err;
  const Outcome all = RunScript(script, with({}));
  EXPECT_EQ(Read("result"), "triton  " + temp_ / "caches/inductor" + ".\n");
  EXPECT_THAT(all.err, HasSubstr("published 2 files"));
  const Outcome unknown = RunScript(script, with({"--cache", "tritton"}));
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("--cache: \"tritton\" is not a cache kind"));
  EXPECT_THAT(unknown.err, HasSubstr("known: torchinductor, triton, vllm"));
}

TEST_F(BundleFlags, RunAndPackReportFilesThatNoCacheKindNames) {
  const std::string script =
      "cd $TRITON_CACHE_DIR/..; /bin/mkdir -p triton/KEY new_engine/kernels; "
      "echo {} > triton/KEY/__grp__k.json; echo 12345678 > new_engine/kernels/a.bin";
  const Outcome run =
      RunScript(script, {"--dir", temp_ / "caches", "--node-facts", temp_ / "facts.json"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("published 1 files"));
  EXPECT_THAT(run.err, HasSubstr("cachewarm run: not published, because they match no cache kind: "
                                 "1 files, 0.0 MB in new_engine/kernels\n"));
  const Words pack = {"pack", temp_ / "caches", "layout://" + temp_.path() + "/packed/llama",
                      "--node-facts", temp_ / "facts.json"};
  const Outcome packed = Run(pack);
  EXPECT_THAT(packed.err,
              HasSubstr("not packed, because they match no cache kind: 1 files, 0.0 MB in "
                        "new_engine/kernels\n"));
  Words json = pack;
  json.emplace_back("--json");
  const Json unnamed = Parsed(Run(json))["unnamed"];
  EXPECT_EQ(unnamed["files"], 1);
  EXPECT_EQ(unnamed["bytes"], 9);
  EXPECT_EQ(unnamed["directories"][0], "new_engine/kernels");
}

TEST_F(BundleFlags, CommandOfRunGetsItsWordsAndGivesTheExitCode) {
  const Outcome outcome =
      Run({"run", "--store", temp_ / "bundles", "--dir", temp_ / "caches", "--", "/bin/sh", "-c",
           "echo \"$2\" > $1; exit 42", "sh", temp_ / "result", "--json"});
  EXPECT_EQ(outcome.code, 42) << outcome.err;
  EXPECT_EQ(Read("result"), "--json\n");
}

}  // namespace
}  // namespace cachewarm::cli
