// SPDX-License-Identifier: Apache-2.0
// Calls the whole program with command lines.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/verbs.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "lib/fs/file.h"
#include "tests/fakes/noise.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.MakeDirs("tree/inductor/ab", 0755).ok());
    std::ofstream(temp_ / "tree/inductor/ab/cabcd.py") << "print(1)\n";
    std::ofstream(temp_ / "facts.json") << R"({"gpuType":"nvidia/h100-80gb-hbm3/sm_90",)"
                                        << R"("cpuClass":"x86-64-v3/intel-6-85/0123abcd"})";
  }

  Outcome Run(const std::vector<std::string>& words) {
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = false,
                    .clock = SystemClock(),
                    .environment = environment_};
    const int code = RunProgram(words, console);
    return {code, out.str(), err.str()};
  }
  Outcome Pack(const std::string& tag) {
    return Run({"pack", temp_ / "tree", Bundle(tag), "--node-facts", temp_ / "facts.json"});
  }
  std::string Bundle(const std::string& tag) const {
    return fmt::format("layout://{}/store/llama:{}", temp_.path(), tag);
  }

  std::map<std::string, std::string> environment_;
  TempDir temp_;
  fs::Dir dir_ = temp_.Open();
};

TEST_F(ProgramTest, HelpTeachesEveryVerb) {
  const Outcome help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Verb& verb : AllVerbs()) {
    EXPECT_THAT(help.out, HasSubstr(std::string(verb.name)));
    const Outcome one = Run({std::string(verb.name), "--help"});
    EXPECT_EQ(one.code, 0) << verb.name;
    EXPECT_EQ(Run({std::string(verb.name), "-h"}).out, one.out);
    for (const std::string& line : LinesOf(one.out.substr(one.out.find("\nOptions:\n")))) {
      EXPECT_LE(line.size(), 90U) << line;
    }
    EXPECT_THAT(one.out, HasSubstr("Usage: cachewarm " + std::string(verb.name)));
    EXPECT_THAT(one.out, ::testing::ContainsRegex("  .*cachewarm")) << "an example";
    for (const Option& option : OptionsOf(verb)) {
      EXPECT_THAT(one.out, HasSubstr("--" + std::string(option.name)));
    }
  }
  EXPECT_EQ(Run({}).code, 2);
  EXPECT_EQ(Run({"-h"}).out, help.out);
  EXPECT_THAT(Run({"--version"}).out, HasSubstr("cachewarm "));
}

TEST_F(ProgramTest, UsageErrorsAreExplained) {
  const struct {
    std::vector<std::string> words;
    std::string message;
  } cases[] = {{{"nope"}, "unknown verb \"nope\"; --help lists all verbs"},
               {{"inspct"}, "unknown verb \"inspct\"; did you mean inspect?"},
               {{"inspect", "llama"}, "bundle \"llama\": unknown scheme"},
               {{"sign", Bundle("v1")}, "--key FILE: required"},
               {{"caches", "tritton"}, "\"tritton\" is not a cache kind"},
               {{"run", "--", "true"}, "--store: required"},
               {{"run", "--cache", "tritton", "--", "true"}, "--cache: \"tritton\" is not a cache"},
               {{"run", "--ready-url", "tcp:", "--", "true"}, "--ready-url: "},
               {{"run", "--ready-log", "(", "--", "true"}, "--ready-log: \"(\": "},
               {{"run", "--max-wait=1h", "--", "true"}, "--max-wait: \"1h\" is not a whole number"},
               {{"load", "--min-free-bytes=-1"}, "--min-free-bytes: \"-1\" is not a whole number"},
               {{"pack", "a", "b", "--devices=1025"}, "--devices: \"1025\" is not a whole number"},
               {{"pack"}, "pack takes DIRECTORY BUNDLE"},
               {{"pack", "a", "b", "c"}, "pack takes DIRECTORY BUNDLE"},
               {{"verify", "x", "--nope"}, "--nope: unknown option; --help lists all options"},
               {{"verify", "x", "--quite"}, "--quite: unknown option; did you mean --quiet?"},
               {{"verify", "x", "--", "y"}, "this verb takes no words after \"--\""}};
  for (const auto& c : cases) {
    const Outcome outcome = Run(c.words);
    EXPECT_EQ(outcome.code, 2) << c.message;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_THAT(outcome.err, HasSubstr("--help"));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(ProgramTest, PackUsesBaseOfSameRepository) {
  const std::string noise = fakes::Noise(200'000, 1);
  std::ofstream(temp_ / "tree/inductor/ab/clarge.py") << noise;
  ASSERT_EQ(Pack("v1").code, 0);
  std::ofstream(temp_ / "tree/inductor/ab/cnew.py") << "print(2)\n";
  const auto pack_upon = [&](const std::string& base) {
    return Run({"pack", temp_ / "tree", Bundle("v2"), "--node-facts", temp_ / "facts.json",
                "--base", base});
  };
  const Outcome packed = pack_upon(Bundle("v1"));
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.err, HasSubstr(" new, the rest already in the store"));
  EXPECT_EQ(Run({"verify", Bundle("v2")}).code, 0);
  EXPECT_EQ(Run({"unpack", Bundle("v2"), temp_ / "v2"}).code, 0);
  EXPECT_EQ(*fs::ReadFile(dir_, "v2/inductor/ab/clarge.py", 1 << 20), noise);
  EXPECT_EQ(*fs::ReadFile(dir_, "v2/inductor/ab/cnew.py", 100), "print(2)\n");
  const Outcome elsewhere = pack_upon(fmt::format("layout://{}/store/other:v1", temp_.path()));
  EXPECT_EQ(elsewhere.code, kUsage);
  EXPECT_THAT(elsewhere.err, HasSubstr("--base: "));
}

TEST_F(ProgramTest, BundlePassesThroughEveryVerb) {
  const Outcome packed = Pack("k-1");
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("/store/llama@sha256:"));
  EXPECT_THAT(packed.err, HasSubstr("packed 1 files"));

  EXPECT_EQ(Run({"verify", Bundle("k-1")}).code, 0);
  const Outcome shown = Run({"inspect", Bundle("k-1"), "--entries"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("nvidia/h100-80gb-hbm3/sm_90"));
  EXPECT_THAT(shown.out, HasSubstr("inductor/ab/cabcd.py"));

  const std::string copy = fmt::format("layout://{}/other/copy", temp_.path());
  const Outcome pulled = Run({"pull", Bundle("k-1"), copy});
  EXPECT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_EQ(Run({"push", copy + ":k-1", Bundle("k-2")}).code, 0);

  const Outcome unpacked = Run({"unpack", copy + ":k-1", temp_ / "out/"});
  EXPECT_EQ(unpacked.code, 0) << unpacked.err;
  EXPECT_EQ(*fs::ReadFile(dir_, "out/inductor/ab/cabcd.py", 100), "print(1)\n");
  EXPECT_EQ(dir_.Stat("out/inductor/ab/cabcd.py")->mode, 0444U);
}

TEST_F(ProgramTest, SignatureIsCheckedByKeyAndCopied) {
  std::ofstream(temp_ / "key.pem") << bundle::kSigner;
  std::ofstream(temp_ / "key.pub") << bundle::kSignerPublic;
  std::ofstream(temp_ / "other.pub") << bundle::kOtherSignerPublic;
  ASSERT_EQ(Pack("k-1").code, 0);
  const std::string copy = fmt::format("layout://{}/other/copy", temp_.path());
  const std::vector<std::vector<std::string>> readings = {{"verify", Bundle("k-1")},
                                                          {"pull", Bundle("k-1"), copy},
                                                          {"unpack", Bundle("k-1"), temp_ / "out"}};
  const auto with_key = [&](std::vector<std::string> words, const std::string& key) {
    words.insert(words.end(), {"--key", temp_ / key});
    return Run(words);
  };
  for (const auto& words : readings) {
    const Outcome unsigned_yet = with_key(words, "key.pub");
    EXPECT_EQ(unsigned_yet.code, 3) << words[0];
    EXPECT_THAT(unsigned_yet.err, HasSubstr("has no signature")) << words[0];
  }
  EXPECT_FALSE(*dir_.Exists("out"));
  EXPECT_FALSE(*dir_.Exists("other/copy"));

  const Outcome made = Run({"sign", Bundle("k-1"), "--key", temp_ / "key.pem"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("/store/llama@sha256:"));
  const Outcome again = Run({"sign", Bundle("k-1"), "--key", temp_ / "key.pem"});
  EXPECT_THAT(again.err, HasSubstr("already"));
  for (const auto& words : readings) {
    EXPECT_EQ(with_key(words, "other.pub").code, 3) << words[0];
    const Outcome read = with_key(words, "key.pub");
    EXPECT_EQ(read.code, 0) << words[0] << read.err;
  }
  const Outcome verified = Run({"verify", copy + ":k-1", "--key", temp_ / "key.pub"});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("intact, signed"));
}

TEST_F(ProgramTest, UnusableKeyIsReported) {
  ASSERT_EQ(Pack("k-1").code, 0);
  std::ofstream(temp_ / "cosign.key") << "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n";
  const Outcome encrypted = Run({"sign", Bundle("k-1"), "--key", temp_ / "cosign.key"});
  EXPECT_EQ(encrypted.code, 1);
  EXPECT_THAT(encrypted.err, HasSubstr("cosign sign instead"));
  EXPECT_THAT(Run({"sign", Bundle("k-1")}).err, HasSubstr("--key"));
  EXPECT_EQ(Run({"verify", Bundle("k-1"), "--key", temp_ / "none"}).code, 1);
}

TEST_F(ProgramTest, StoreOptionsAreValidated) {
  const std::pair<std::string, std::string> wrong[] = {{"--bytes-per-second", "100"},
                                                       {"--proxy", "https://p"},
                                                       {"--proxy", "http://user:pw@p"},
                                                       {"--client-key", temp_ / "none"}};
  for (const auto& [option, value] : wrong) {
    const Outcome outcome = Run({"inspect", "oci://registry.test/team/llama:k-1", option, value});
    EXPECT_EQ(outcome.code, option == "--client-key" ? kFailed : kUsage) << option << value;
    EXPECT_THAT(outcome.err, HasSubstr(option.substr(option.rfind('-') + 1))) << outcome.err;
  }
}

TEST_F(ProgramTest, EnvironmentProxyAppliesToRegistries) {
  environment_["HTTPS_PROXY"] = "https://p.test";
  const std::vector<std::string> words = {"inspect", "oci://registry.test/team/llama:k-1"};
  EXPECT_THAT(Run(words).err, HasSubstr("HTTPS_PROXY"));
  EXPECT_EQ(Pack("k-1").code, 0) << "a directory needs no proxy";
}

TEST_F(ProgramTest, SameTreeGivesSameDigest) {
  const Outcome first = Pack("k-1");
  std::filesystem::last_write_time(
      temp_ / "tree/inductor/ab/cabcd.py",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(100));
  const Outcome second = Pack("k-2");
  EXPECT_EQ(first.out, second.out);
}

TEST_F(ProgramTest, JsonIsOneObjectOnStdout) {
  ASSERT_EQ(Pack("k-1").code, 0);
  const std::vector<std::vector<std::string>> calls = {
      {"pack", temp_ / "tree", Bundle("k-2"), "--node-facts", temp_ / "facts.json"},
      {"verify", Bundle("k-1")},
      {"inspect", Bundle("k-1"), "--entries"},
      {"pull", Bundle("k-1"), fmt::format("layout://{}/other/copy", temp_.path())},
      {"unpack", Bundle("k-1"), temp_ / "out"}};
  for (std::vector<std::string> call : calls) {
    call.emplace_back("--json");
    const Outcome outcome = Run(call);
    EXPECT_EQ(outcome.code, 0) << call[0] << outcome.err;
    const auto json = codec::ParseJson(outcome.out);
    ASSERT_TRUE(json.ok()) << call[0] << outcome.out;
    EXPECT_TRUE(json->contains("digest")) << call[0];
    EXPECT_EQ(outcome.err, "") << call[0];
  }
}

TEST_F(ProgramTest, UnpackKeepsExistingDirectory) {
  ASSERT_EQ(Pack("k-1").code, 0);
  std::filesystem::create_directories(temp_ / "empty");
  EXPECT_EQ(Run({"unpack", Bundle("k-1"), temp_ / "empty"}).code, 0);
  const Outcome again = Run({"unpack", Bundle("k-1"), temp_ / "empty"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists and is not empty"));
  EXPECT_EQ(Run({"unpack", Bundle("k-1"), temp_ / "facts.json"}).code, 1);
  EXPECT_TRUE(std::filesystem::is_regular_file(temp_ / "facts.json"));
}

TEST_F(ProgramTest, DamageReturns3AndLeavesNoDirectory) {
  ASSERT_EQ(Pack("k-1").code, 0);
  for (const auto& blob : std::filesystem::directory_iterator(temp_ / "store/llama/blobs/sha256")) {
    std::ofstream(blob.path(), std::ios::binary | std::ios::in | std::ios::out) << "XXXX";
  }
  EXPECT_EQ(Run({"verify", Bundle("k-1")}).code, 3);
  EXPECT_EQ(Run({"unpack", Bundle("k-1"), temp_ / "out"}).code, 3);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out"));
}

TEST_F(ProgramTest, LimitsOfABundleAreOptions) {
  std::ofstream(temp_ / "tree/inductor/ab/cabce.py") << "print(2)\n";
  ASSERT_EQ(Pack("k-1").code, 0);
  const struct {
    std::string option;
    ExitCode code;
    std::string result;
  } cases[] = {{"--limit-files=1", kFailed, "more than 1 (limits.files)"},
               {"--limit-file-bytes=1", kFailed, "(limits.fileBytes)"},
               {"--limit-bytes=1", kFailed, "more than 1 (limits.bytes)"},
               {"--limit-files=200001", kUsage, "is not a whole number from 1 to 200000"},
               {"--limit-files=0", kUsage, "is not a whole number from 1 to 200000"},
               {"--limit-files=12x", kUsage, "is not a whole number from 1 to 200000"},
               {"--limit-bytes=99999999999999999999", kUsage, "is not a whole number"},
               {"--limit-ratio=many", kUsage, "is not a whole number"}};
  for (const auto& each : cases) {
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"verify", Bundle("k-1"), each.option},
          std::vector<std::string>{"unpack", Bundle("k-1"), temp_ / "out", each.option}}) {
      const Outcome refused = Run(call);
      EXPECT_EQ(refused.code, each.code) << call[0] << each.option;
      EXPECT_THAT(refused.err, HasSubstr(each.result)) << call[0];
    }
    EXPECT_FALSE(std::filesystem::exists(temp_ / "out")) << each.option;
  }
  EXPECT_EQ(Run({"verify", Bundle("k-1"), "--limit-files=200000"}).code, 0);
  EXPECT_EQ(Run({"unpack", Bundle("k-1"), temp_ / "out", "--limit-files=100"}).code, 0);
}

TEST_F(ProgramTest, MissingBundleReturns4) {
  EXPECT_EQ(Run({"verify", Bundle("k-1")}).code, 4);
  ASSERT_EQ(Pack("k-1").code, 0);
  EXPECT_EQ(Run({"verify", Bundle("k-none")}).code, 4);
  const Outcome vague = Run({"verify", fmt::format("layout://{}/store/llama", temp_.path())});
  EXPECT_EQ(vague.code, kUsage);
  EXPECT_THAT(vague.err, HasSubstr("add :tag or @sha256:hex"));
}

TEST_F(ProgramTest, PackRejectsDirectoryWithoutCaches) {
  std::filesystem::create_directories(temp_ / "nothing");
  const Outcome outcome = Run({"pack", temp_ / "nothing", Bundle("k-1")});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("no cache files found"));
}

// A "model server" that compiles if its cache is empty, and writes whether it started warm or cold.
constexpr char kServer[] =
    "f=$TORCHINDUCTOR_CACHE_DIR/ab/cabcd.py; mkdir -p ${f%/*}; "
    "if [ -e $f ]; then echo warm; else echo cold; echo 'print(1)' > $f; fi > $1; exit $2";

TEST_F(ProgramTest, RunIsColdOnceAndWarmOnNextMachine) {
  const auto run = [&](const std::string& machine, const std::string& code) {
    return Run({"run", "--store", temp_ / "bundles", "--name", "llama", "--dir", temp_ / machine,
                "--node-facts", temp_ / "facts.json", "--", "/bin/sh", "-c", kServer, "sh",
                temp_ / "result", code});
  };
  const auto result = [&] { return *fs::ReadFile(dir_, "result", 100); };
  const Outcome cold = run("one", "7");
  EXPECT_EQ(cold.code, 7) << cold.err;
  EXPECT_EQ(result(), "cold\n");
  EXPECT_THAT(cold.err, HasSubstr("published 1 files"));
  const Outcome again = run("one", "0");
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(result(), "warm\n");
  EXPECT_EQ(again.err, "");
  const Outcome other = run("two", "0");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(result(), "warm\n");
  EXPECT_TRUE(std::filesystem::is_regular_file(temp_ / "two/inductor/ab/cabcd.py"));
}

TEST_F(ProgramTest, RunWithKeyUsesOnlySignedBundles) {
  std::ofstream(temp_ / "key.pem") << bundle::kSigner;
  std::ofstream(temp_ / "key.pub") << bundle::kSignerPublic;
  const auto run = [&](const std::string& machine, const std::vector<std::string>& options) {
    std::vector<std::string> words = {"run",           "--store",      temp_ / "bundles",   "--dir",
                                      temp_ / machine, "--node-facts", temp_ / "facts.json"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", kServer, "sh", temp_ / "result", "0"});
    return Run(words);
  };
  const auto result = [&] { return *fs::ReadFile(dir_, "result", 100); };
  EXPECT_THAT(run("one", {}).err, HasSubstr("published 1 files"));
  const Outcome unsigned_yet = run("two", {"--key", temp_ / "key.pub"});
  EXPECT_EQ(result(), "cold\n");
  EXPECT_THAT(unsigned_yet.err, HasSubstr("has no signature"));
  EXPECT_THAT(unsigned_yet.err, HasSubstr("starting cold"));
  const Outcome signing =
      run("three", {"--key", temp_ / "key.pub", "--sign-key", temp_ / "key.pem"});
  EXPECT_EQ(result(), "cold\n");
  EXPECT_EQ(signing.code, 0) << signing.err;
  EXPECT_EQ(run("four", {"--key", temp_ / "key.pub"}).err, "");
  EXPECT_EQ(result(), "warm\n");
  EXPECT_THAT(run("five", {"--sign-key", temp_ / "none"}).code, 0);
}

TEST_F(ProgramTest, RunWithoutStorePublishesLater) {
  const Outcome outcome =
      Run({"run", "--store", "oci://127.0.0.1:1", "--dir", temp_ / "one", "--node-facts",
           temp_ / "facts.json", "--", "/bin/sh", "-c", kServer, "sh", temp_ / "result", "0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(*fs::ReadFile(dir_, "result", 100), "cold\n");
  EXPECT_THAT(outcome.err, HasSubstr("starting cold"));
  const Outcome later =
      Run({"run", "--store", temp_ / "bundles", "--dir", temp_ / "one", "--node-facts",
           temp_ / "facts.json", "--", "/bin/sh", "-c", kServer, "sh", temp_ / "result", "0"});
  EXPECT_EQ(later.code, 0);
  EXPECT_EQ(*fs::ReadFile(dir_, "result", 100), "warm\n");
  EXPECT_THAT(later.err, HasSubstr("published 1 files"));
}

TEST_F(ProgramTest, RunRemovesTheLockOfAKilledCommand) {
  const auto run = [&](const std::string& script) {
    return Run({"run", "--store", temp_ / "bundles", "--dir", temp_ / "one", "--node-facts",
                temp_ / "facts.json", "--", "/bin/sh", "-c", script});
  };
  EXPECT_EQ(run("mkdir $TORCH_EXTENSIONS_DIR/ops; echo > $TORCH_EXTENSIONS_DIR/ops/lock; "
                "kill -9 $$")
                .code,
            137);
  const Outcome next = run("test ! -e $TORCH_EXTENSIONS_DIR/ops/lock");
  EXPECT_EQ(next.code, 0) << "the command would wait for the lock";
  EXPECT_THAT(next.err, HasSubstr("removed " + (temp_ / "one/torch_extensions/ops/lock")));
}

TEST_F(ProgramTest, RunOfMissingCommandReturns127) {
  const Outcome outcome = Run({"run", "--store", temp_ / "bundles", "--dir", temp_ / "one",
                               "--node-facts", temp_ / "facts.json", "--", "/nonexistent/server"});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_EQ(Run({"run", "--store", "x"}).code, 2);
}

TEST_F(ProgramTest, CachesPrintsATableAnObjectOrOneKind) {
  const Outcome table = Run({"caches"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out,
              HasSubstr("\ntorchinductor         inductor           yes       torch 2.15 ran"));
  EXPECT_THAT(table.out, HasSubstr("\naiter                 aiter              opt-in    "));
  const Outcome one = Run({"caches", "vllm"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("variables       VLLM_CACHE_ROOT=@\n"));
  EXPECT_THAT(one.out, HasSubstr("refuses with    VLLM_FORCE_AOT_LOAD=1\n"));
  EXPECT_THAT(one.out, HasSubstr("startup_plan/**: measured during a cold start\n"));
  EXPECT_THAT(one.out, Not(HasSubstr("triton ")));
  EXPECT_THAT(Run({"caches", "aiter"}).out, HasSubstr("only by name: vLLM hangs on ROCm"));
  const auto json = codec::ParseJson(Run({"caches", "jax", "aiter", "-o", "json"}).out);
  ASSERT_TRUE(json.ok()) << json.status();
  ASSERT_EQ(json->size(), 2U);
  EXPECT_EQ((*json)[0]["name"], "jax");
  EXPECT_EQ((*json)[0]["variables"][0], "JAX_COMPILATION_CACHE_DIR=@");
  EXPECT_EQ((*json)[0]["refusesToCompileWith"], codec::Json::array());
  EXPECT_EQ((*json)[0]["optIn"], "");
  EXPECT_NE((*json)[1]["optIn"], "");
  const auto yaml = codec::ParseYaml(Run({"caches", "jax", "aiter", "--output", "yaml"}).out);
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  EXPECT_EQ(*yaml, *json);
  EXPECT_EQ(Run({"caches", "jax", "aiter", "-o", "name"}).out, "jax\naiter\n");
  EXPECT_THAT(Run({"caches", "jax", "-o", "wide"}).out,
              ContainsRegex("KIND +DIRECTORY +DEFAULT +ENGINE +VARIABLES +PROOF\njax +jax +yes "));
  EXPECT_EQ(Run({"caches", "-o", "csv"}).code, kUsage);
  const Outcome unknown = Run({"caches", "tritton"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("\"tritton\" is not a cache kind"));
  EXPECT_EQ(unknown.out, "");
}

}  // namespace
}  // namespace cachewarm::cli
