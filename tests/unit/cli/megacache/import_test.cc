// SPDX-License-Identifier: Apache-2.0
// "cachewarm import" with artifacts in the format of torch.
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/unit/cli/megacache/fixture.h"
#include "tests/unit/cli/virtual_environment.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using ImportTest = MegacacheFixture;

TEST_F(ImportTest, WritesEveryEntryWhereTorchLooksForIt) {
  const Outcome outcome = Import({"--dir", temp_ / "cache", "--with", temp_ / "torch"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, temp_ / "cache" + "\n");
  EXPECT_EQ(Read("cache/" + GraphPath(graph_)), graph_);
  EXPECT_EQ(Read("cache/inductor/aotautograd/aabcd1/" + megacache::ContentName("aot")), "aot");
  EXPECT_EQ(Read("cache/inductor/ab/00112233.best_config"), "{\"num_warps\": 4}");
  EXPECT_EQ(Read("cache/inductor/dynamo/code_state_job_0_.pkl"), "second") << "the last one counts";
  EXPECT_EQ(Read("cache/inductor/dynamo/0a1b2c3d/entry"), "function");
  EXPECT_THAT(outcome.err, HasSubstr("imported 1 aot_autograd, 1 autotune, 1 inductor, 2 pgo, "
                                     "1 precompile: 13 new files"));
}

TEST_F(ImportTest, TakesTheCompiledKernelsOfTheGraphs) {
  const Outcome outcome = Import({"--dir", temp_ / "cache", "--with", temp_ / "torch", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string name :
       {"ob/cone.main.so", "ob/cone.main.cpp", "ob/ctwo.main.so", "ob/ctwo.main.cpp",
        "wr/cwrapper.py", "is/cisa.so", "is/cisa.cpp", "is/cisa.so.load_ok"}) {
    EXPECT_EQ(Read("cache/inductor/" + name), Read("torch/" + name)) << name;
    EXPECT_TRUE(std::filesystem::exists(temp_ / ("cache/inductor/" + name))) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/ob/cother.main.so"))
      << "of a graph that is not in the artifact";
  const codec::Json json = Parsed(outcome);
  EXPECT_EQ(json["kernels"], 2);
  EXPECT_EQ(json["compiled"], 2);
  EXPECT_EQ(json["files"], 13);
  EXPECT_EQ(json["present"], 0);
  EXPECT_EQ(json["entries"]["pgo"], 2);
  EXPECT_EQ(json["directory"], temp_ / "cache");
  EXPECT_EQ(json["bundle"], "");
  EXPECT_EQ(json["environment"]["TORCHINDUCTOR_CACHE_DIR"], temp_ / "cache/inductor");
  EXPECT_EQ(json["environment"]["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"], "0");
}

TEST_F(ImportTest, DirectoryWithOtherAutotuneResultsKeepsThem) {
  WriteArtifact({{"autotune", "ab/00112233.best_config", "{\"num_warps\": 4}"},
                 {"autotune", "ab/44556677.best_config", "{\"num_warps\": 4}"}});
  ASSERT_EQ(Import({"--dir", temp_ / "cache"}).code, 0);
  temp_.Write("cache/inductor/ab/00112233.best_config", "{\"num_warps\": 8}");
  std::filesystem::remove(temp_ / "cache/inductor/ab/44556677.best_config");
  const Outcome outcome = Import({"--dir", temp_ / "cache", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Parsed(outcome)["files"], 0);
  EXPECT_EQ(Read("cache/inductor/ab/00112233.best_config"), "{\"num_warps\": 8}");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/ab/44556677.best_config"));
}

TEST_F(ImportTest, WithIsADirectoryOfTorchOrOfCachewarmAndDefaultsToTheVariable) {
  std::filesystem::create_directories(temp_ / "whole");
  std::filesystem::copy(temp_ / "torch", temp_ / "whole/inductor",
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(
      Parsed(Import({"--dir", temp_ / "one", "--with", temp_ / "whole", "--json"}))["compiled"], 2);
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  EXPECT_EQ(Parsed(Import({"--dir", temp_ / "two", "--json"}))["compiled"], 2);
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "missing";
  EXPECT_EQ(Parsed(Import({"--dir", temp_ / "three", "--json"}))["compiled"], 0);
  const Outcome missing = Import({"--dir", temp_ / "four", "--with", temp_ / "missing"});
  EXPECT_EQ(missing.code, kNotFound);
  EXPECT_THAT(missing.err, HasSubstr("--with"));
}

TEST_F(ImportTest, ReportsTheKernelsThatAStartCompilesAgain) {
  EXPECT_THAT(
      Import({"--dir", temp_ / "one"}).err,
      HasSubstr("2 of 2 kernels have no compiled object: a start that hits an entry "
                "with such a kernel compiles it again; set --with to the TORCHINDUCTOR_CACHE_DIR"));
  std::filesystem::remove(temp_ / "torch/ob/ctwo.main.so");
  EXPECT_THAT(Import({"--dir", temp_ / "two", "--with", temp_ / "torch"}).err,
              HasSubstr("1 of 2 kernels have no compiled object in " + temp_ / "torch"));
  EXPECT_THAT(Import({"--dir", temp_ / "three", "--dry-run"}).err, HasSubstr("2 of 2 kernels"));
  WriteArtifact({{"aot_autograd", kAotKey, "no kernels"}});
  EXPECT_THAT(Import({"--dir", temp_ / "four"}).err, Not(HasSubstr("kernels")));
}

TEST_F(ImportTest, LeavesOutAKernelWhoseFilesAreDamaged) {
  temp_.Write("torch/ob/ctwo.main.so", "");
  const Outcome outcome = Import({"--dir", temp_ / "cache", "--with", temp_ / "torch"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("skipped damaged file: ob/ctwo.main.so: empty file\n"));
  EXPECT_THAT(outcome.err, HasSubstr("1 of 2 kernels have no compiled object"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/ob/ctwo.main.so"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/ob/ctwo.main.cpp"));
}

TEST_F(ImportTest, TakesTritonsDirectoriesAndIgnoresLinksAndItsOwnFiles) {
  temp_.Write("torch/triton/0/ABCD/k.cubin", "cubin");
  temp_.Write("torch/triton/0/ABCD/__grp__k.json", "{\"child_paths\": {}}");
  temp_.Write("torch/.cachewarm/tree/inductor/ob/cone.main.so", "hidden");
  temp_.Write("secret", Kernel("one"));
  std::filesystem::create_symlink(temp_ / "secret", temp_ / "torch/ob/clink.main.cpp");
  ASSERT_EQ(Import({"--dir", temp_ / "cache", "--with", temp_ / "torch"}).code, 0);
  EXPECT_EQ(Read("cache/inductor/triton/0/ABCD/k.cubin"), "cubin");
  EXPECT_NE(Read("cache/inductor/triton/0/ABCD/__grp__k.json"), "");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/ob/clink.main.cpp"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor/.cachewarm"));
}

TEST_F(ImportTest, DryRunListsTheFilesAndWritesNothing) {
  const std::vector<std::string> flags = {"--dir", temp_ / "cache", "--with", temp_ / "torch",
                                          "--dry-run"};
  const Outcome text = Import(flags);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("inductor "));
  EXPECT_THAT(text.out, HasSubstr(GraphPath(graph_) + "\n"));
  EXPECT_THAT(text.out, HasSubstr("object "));
  EXPECT_THAT(text.err, HasSubstr("would import 1 aot_autograd"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache"));
  std::vector<std::string> with_store = flags;
  with_store.insert(with_store.end(), {"--store", temp_ / "store", "--name", "llama"});
  EXPECT_THAT(Import(with_store).err,
              HasSubstr("publish them as layout://" + temp_ / "store/llama:k-"));
  with_store.emplace_back("--json");
  const codec::Json json = Parsed(Import(with_store));
  ASSERT_EQ(json["files"].size(), 13U);
  EXPECT_EQ(json["files"][0]["type"], "object");
  EXPECT_EQ(json["files"][12]["path"], GraphPath(graph_));
  EXPECT_EQ(json["files"][12]["bytes"], graph_.size());
  EXPECT_FALSE(std::filesystem::exists(temp_ / "store"));
}

TEST_F(ImportTest, SecondImportAddsOnlyWhatIsMissing) {
  ASSERT_EQ(Import({"--dir", temp_ / "cache"}).code, 0);
  temp_.Write("cache/inductor/dynamo/code_state_job_0_.pkl", "newer");
  const Outcome again = Import({"--dir", temp_ / "cache", "--json"});
  EXPECT_EQ(Parsed(again)["present"], 4);
  EXPECT_EQ(Parsed(again)["files"], 1) << "the profile is replaced, as by torch";
  EXPECT_EQ(Read("cache/inductor/dynamo/code_state_job_0_.pkl"), "second");
  EXPECT_THAT(Import({"--dir", temp_ / "cache"}).err, HasSubstr("5 files were already there"));
}

TEST_F(ImportTest, ReportsTheSettingOfPrecompiledHeaders) {
  WriteArtifact({{"inductor", kGraphKey, GraphEntry(GraphCode({}), true)}});
  const Outcome text = Import({"--dir", temp_ / "cache"});
  EXPECT_THAT(text.err, HasSubstr("also set "
                                  "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS=1"));
  const codec::Json json = Parsed(Import({"--dir", temp_ / "cache", "--json"}));
  EXPECT_EQ(json["environment"]["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"], "1");
}

TEST_F(ImportTest, StoreGetsABundleThatTheSameMachineLoads) {
  const std::vector<std::string> store = {"--store", temp_ / "store", "--name", "llama"};
  std::vector<std::string> flags = store;
  flags.insert(flags.end(), {"--dir", temp_ / "cache", "--with", temp_ / "torch"});
  const Outcome outcome = Import(flags);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("layout://" + temp_ / "store/llama:k-"));
  std::vector<std::string> load = {
      "load",     "--dir",       temp_ / "other", "--node-facts", temp_ / "facts.json",
      "--python", "/nonexistent"};
  load.insert(load.end(), store.begin(), store.end());
  const Outcome loaded = Run(load);
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_EQ(Read("other/" + GraphPath(graph_)), graph_);
  EXPECT_EQ(Read("other/inductor/ob/cone.main.so"), SharedObject("one"));
  EXPECT_EQ(Read("other/inductor/dynamo/code_state_job_0_.pkl"), "second");
  EXPECT_EQ(Read("other/inductor/dynamo/0a1b2c3d/entry"), "function");
}

TEST_F(ImportTest, StoreOfTheEnvironmentGetsTheBundle) {
  environment_ = {{"CACHEWARM_STORE", temp_ / "store"}, {"HOME", temp_ / "home"}};
  const Outcome outcome = Import({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(std::string(Parsed(outcome)["bundle"]), HasSubstr("/store/run:k-"));
  EXPECT_THAT(std::string(Parsed(outcome)["directory"]),
              HasSubstr(temp_ / "home/.cache/cachewarm/run/"));
}

TEST_F(ImportTest, BundleIsSignedAndTheSignatureIsChecked) {
  temp_.Write("key.pem", bundle::kSigner);
  temp_.Write("key.pub", bundle::kSignerPublic);
  temp_.Write("unsigned/inductor/ab/cextra.py", "print(1)\n");
  const std::vector<std::string> source = {
      "--store", temp_ / "store", "--node-facts", temp_ / "facts.json", "--python", "/nonexistent"};
  const auto call = [&](std::vector<std::string> words) {
    words.insert(words.end(), source.begin(), source.end());
    return Run(words);
  };
  ASSERT_EQ(call({"save", "--dir", temp_ / "unsigned"}).code, 0);
  const Outcome outcome = Import({"--store", temp_ / "store", "--dir", temp_ / "cache",
                                  "--sign-key", temp_ / "key.pem", "--key", temp_ / "key.pub"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(call({"load", "--dir", temp_ / "other", "--key", temp_ / "key.pub"}).code, 0);
  EXPECT_EQ(Read("other/" + GraphPath(graph_)), graph_);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "other/inductor/ab/cextra.py"))
      << "nobody signed it";
}

TEST_F(ImportTest, FactorsOfTheKeyAreThoseOfTheMachineOptions) {
  const auto bundle_of = [this](std::vector<std::string> flags) {
    flags.insert(flags.end(),
                 {"--dir", temp_ / "cache", "--store", temp_ / "store", "--dry-run", "--json"});
    return std::string(Parsed(Import(std::move(flags)))["bundle"]);
  };
  const std::string plain = bundle_of({});
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--image", "registry/llama:1"}, {"--container", "server"}, {"--devices", "3"}}) {
    EXPECT_NE(bundle_of(flag), plain) << flag[0];
  }
  temp_.Write("facts.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})");
  EXPECT_NE(bundle_of({}), plain) << "the machine of --node-facts";
}

TEST_F(ImportTest, EnginesOfThePythonAreInTheKey) {
  std::vector<std::string> bundles;
  for (const std::string torch : {"1", "2"}) {
    const std::string python = MakeVirtualEnvironment(temp_, "venv-" + torch, torch);
    bundles.push_back(Parsed(Run(
        {"import", temp_ / "artifact.bin", "--node-facts", temp_ / "facts.json", "--python", python,
         "--dir", temp_ / "cache", "--store", temp_ / "store", "--dry-run", "--json"}))["bundle"]);
  }
  EXPECT_NE(bundles[0], bundles[1]);
}

TEST_F(ImportTest, DirectoryOfAnotherMachineStaysUnchanged) {
  temp_.Write("other.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})");
  ASSERT_EQ(Import({"--dir", temp_ / "cache"}).code, 0);
  std::filesystem::remove_all(temp_ / "cache/inductor");
  const Outcome outcome = Run({"import", temp_ / "artifact.bin", "--dir", temp_ / "cache",
                               "--python", "/nonexistent", "--node-facts", temp_ / "other.json"});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("it belongs to GPU type"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor"));
}

TEST_F(ImportTest, UnknownAndDamagedArtifactsAreRefusedBeforeAnythingIsWritten) {
  const auto refuse = [this](const std::string& bytes) {
    temp_.Write("artifact.bin", bytes);
    const Outcome outcome = Import({"--dir", temp_ / "cache"});
    EXPECT_FALSE(std::filesystem::exists(temp_ / "cache")) << bytes.size();
    EXPECT_THAT(outcome.err, HasSubstr("artifact.bin: "));
    return outcome;
  };
  const std::string good = Read("artifact.bin");
  EXPECT_EQ(refuse(good.substr(0, good.size() - 1)).code, kDamaged);
  EXPECT_EQ(refuse("").code, kDamaged);
  const Outcome pickle = refuse("\x80\x04\x95 a pickle of something else");
  EXPECT_EQ(pickle.code, kFailed);
  EXPECT_THAT(pickle.err, HasSubstr("pickle of protocol 4"));
  EXPECT_THAT(refuse(megacache::Write({{"sqlite", "abcd", "x"}})).err, HasSubstr("\"sqlite\""));
  EXPECT_THAT(refuse(megacache::Write({{"inductor", "../../x", "x"}})).err,
              HasSubstr("the key \"../../x\""));
  EXPECT_THAT(refuse(megacache::Write({})).err, HasSubstr("has no entries"));
  std::filesystem::remove(temp_ / "artifact.bin");
  EXPECT_EQ(Import({"--dir", temp_ / "cache"}).code, kNotFound);
}

TEST_F(ImportTest, InterruptedImportLeavesNoPartialFile) {
  stop_.request_stop();
  const Outcome outcome = Import({"--dir", temp_ / "cache", "--with", temp_ / "torch"});
  EXPECT_EQ(outcome.code, kInterrupted) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(temp_ / "cache/inductor"));
}

TEST_F(ImportTest, ProgressIsShownOnATerminalUnlessQuiet) {
  is_terminal_ = true;
  EXPECT_THAT(Import({"--dir", temp_ / "one"}).err, HasSubstr("importing "));
  EXPECT_THAT(Import({"--dir", temp_ / "two", "--quiet"}).err, Not(HasSubstr("importing ")));
}

}  // namespace
}  // namespace cachewarm::cli
