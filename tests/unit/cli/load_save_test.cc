// SPDX-License-Identifier: Apache-2.0
// "cachewarm load" and "cachewarm save" with a real image layout.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/verbs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "tests/fakes/noise.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/cli/virtual_environment.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code = 0;
  codec::Json json;
  std::string err;

  std::string status() const { return json.value("status", ""); }
  std::string reason() const { return json.value("reason", ""); }
};

class LoadSaveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    temp_.Write("amd.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})");
    temp_.Write("intel.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v3/intel-6-85/0123abcd"})");
  }

  Outcome Run(std::vector<std::string> words, const std::string& facts = "amd.json") {
    words.insert(words.end(),
                 {"--store", store_, "--node-facts", temp_ / facts, "--python", python_, "--json"});
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = false,
                    .clock = SystemClock(),
                    .environment = environment_};
    Outcome outcome{.code = RunProgram(words, console), .err = err.str()};
    auto json = codec::ParseJson(out.str());
    EXPECT_TRUE(json.ok()) << out.str() << err.str();
    outcome.json = json.ok() ? *std::move(json) : codec::Json::object();
    return outcome;
  }
  std::string Read(const std::string& path) {
    return fs::ReadFile(temp_.Open(), path, 1 << 20).value_or("(missing)");
  }

  TempDir temp_;
  std::string store_ = temp_ / "store";
  std::string python_ = "/nonexistent";
  std::map<std::string, std::string> environment_;
};

TEST_F(LoadSaveTest, ResultsAreTheFourWordsWithTheirExitCodes) {
  const std::string one = temp_ / "one";
  const Outcome none = Run({"load", "--dir", one});
  EXPECT_EQ(none.status(), "DOES_NOT_EXIST");
  EXPECT_EQ(none.code, 4);
  const Outcome empty = Run({"save", "--dir", one});
  EXPECT_EQ(empty.status(), "SKIPPED");
  EXPECT_EQ(empty.code, 5);
  EXPECT_THAT(empty.reason(), HasSubstr("no cache files"));
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  const Outcome saved = Run({"save", "--dir", one});
  EXPECT_EQ(saved.status(), "SUCCESS") << saved.reason();
  EXPECT_EQ(saved.code, 0);
  EXPECT_EQ(saved.json["files"], 1);
  EXPECT_EQ(Run({"save", "--dir", one}).status(), "SKIPPED");
  const Outcome loaded = Run({"load", "--dir", temp_ / "two"});
  EXPECT_EQ(loaded.status(), "SUCCESS") << loaded.reason();
  EXPECT_EQ(loaded.json["environment"]["TORCHINDUCTOR_CACHE_DIR"], temp_ / "two/inductor");
  EXPECT_EQ(Read("two/inductor/ab/cab.py"), "print(1)\n");
  EXPECT_EQ(Run({"load", "--dir", temp_ / "two"}).status(), "SKIPPED");
  const Outcome error = Run({"save", "--dir", temp_ / "amd.json"});
  EXPECT_EQ(error.status(), "ERROR");
  EXPECT_EQ(error.code, 1);
}

TEST_F(LoadSaveTest, DamagedBundleIsAnErrorAndTheNextSaveReplacesIt) {
  temp_.Write("one/inductor/ab/cab.py", fakes::Noise(100'000, 1));
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  for (const auto& blob : std::filesystem::directory_iterator(temp_ / "store/run/blobs/sha256")) {
    if (blob.file_size() > 50'000) {  // the layer: manifest and config stay intact
      std::filesystem::permissions(blob.path(), std::filesystem::perms::owner_all);
      std::filesystem::resize_file(blob.path(), 50'000);
    }
  }
  const Outcome loaded = Run({"load", "--dir", temp_ / "two"});
  EXPECT_EQ(loaded.status(), "ERROR");
  EXPECT_EQ(loaded.code, 3);
  temp_.Write("two/inductor/ab/cab.py", fakes::Noise(100'000, 1));
  EXPECT_EQ(Run({"save", "--dir", temp_ / "two"}).status(), "SUCCESS");
  EXPECT_EQ(Run({"load", "--dir", temp_ / "three"}).status(), "SUCCESS");
}

TEST_F(LoadSaveTest, FileWrittenAgainAfterLoadOrSaveIsPublished) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  temp_.Write("one/inductor/ab/cab.py", "print('after save')\n");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one"}).status(), "SUCCESS");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one"}).status(), "SKIPPED");
  ASSERT_EQ(Run({"load", "--dir", temp_ / "two"}).code, 0);
  EXPECT_EQ(Read("two/inductor/ab/cab.py"), "print('after save')\n");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "two"}).status(), "SKIPPED");
  temp_.Write("two/inductor/ab/cab.py", "print('after load')\n");
  EXPECT_EQ(Run({"load", "--dir", temp_ / "two"}).status(), "SKIPPED");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "two"}).status(), "SUCCESS") << "also after that load";
  ASSERT_EQ(Run({"load", "--dir", temp_ / "three"}).code, 0);
  EXPECT_EQ(Read("three/inductor/ab/cab.py"), "print('after load')\n");
}

TEST_F(LoadSaveTest, FileThatAReplicaCompiledTooIsNotPublishedAgain) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  temp_.Write("two/inductor/ab/cab.py", "print('other bytes')\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  EXPECT_EQ(Run({"save", "--dir", temp_ / "two"}).status(), "SKIPPED");
}

TEST_F(LoadSaveTest, FileWrittenAgainInTorchinductorCacheDirIsPublished) {
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  temp_.Write("torch/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save"}).status(), "SUCCESS");
  EXPECT_EQ(Run({"save"}).status(), "SKIPPED");
  std::filesystem::remove(temp_ / "torch/ab/cab.py");
  temp_.Write("torch/ab/cab.py", "print('again')\n");
  EXPECT_EQ(Run({"save"}).status(), "SUCCESS");
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "other";
  ASSERT_EQ(Run({"load"}).status(), "SUCCESS");
  EXPECT_EQ(Read("other/ab/cab.py"), "print('again')\n");
  EXPECT_EQ(Run({"save"}).status(), "SKIPPED");
}

TEST_F(LoadSaveTest, DamagedSnapshotIsIgnored) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  temp_.Write("one/.cachewarm/snapshot.json", "{\"version\": 1, \"files\": {\"a\": 7}}");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one"}).status(), "SKIPPED");
  temp_.Write("one/inductor/ab/cab.py", "print('again')\n");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one"}).status(), "SUCCESS") << "the snapshot is whole";
}

TEST_F(LoadSaveTest, TorchinductorCacheDirIsTheDirectory) {
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  EXPECT_EQ(Run({"load"}).status(), "DOES_NOT_EXIST");
  temp_.Write("torch/ab/cab.py", "print(1)\n");
  temp_.Write("torch/locks/x.lock", "");
  EXPECT_EQ(Run({"save"}).status(), "SUCCESS");
  temp_.Write("torch/ab/cnext.py", "print(2)\n");
  EXPECT_EQ(Run({"save"}).json["files"], 2);
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "other";
  const Outcome loaded = Run({"load"});
  EXPECT_EQ(loaded.status(), "SUCCESS") << loaded.reason();
  EXPECT_TRUE(loaded.json["environment"].empty()) << "it is set already";
  EXPECT_EQ(Read("other/ab/cab.py"), "print(1)\n");
  EXPECT_EQ(Read("other/ab/cnext.py"), "print(2)\n");
  EXPECT_EQ(Run({"load"}).status(), "SKIPPED");
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "tree/inductor";
  EXPECT_EQ(Run({"load"}).status(), "SUCCESS");
  EXPECT_EQ(Read("tree/inductor/ab/cab.py"), "print(1)\n");
}

TEST_F(LoadSaveTest, TorchDirectoryKeepsItsOwnAutotuneResults) {
  temp_.Write("one/inductor/ab/00.best_config", "{\"from\": \"one\"}");
  temp_.Write("one/inductor/ab/11.best_config", "{\"from\": \"one\"}");
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  EXPECT_EQ(Run({"load"}).status(), "DOES_NOT_EXIST");
  temp_.Write("torch/ab/cmine.py", "print(2)\n");
  EXPECT_EQ(Run({"save"}).status(), "SUCCESS");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one"}).status(), "SUCCESS");
  temp_.Write("torch/ab/00.best_config", "{\"from\": \"torch\"}");
  EXPECT_EQ(Run({"load"}).status(), "SUCCESS");
  EXPECT_EQ(Read("torch/ab/cab.py"), "print(1)\n");
  EXPECT_EQ(Read("torch/ab/00.best_config"), "{\"from\": \"torch\"}");
  EXPECT_EQ(Read("torch/ab/11.best_config"), "(missing)");
  EXPECT_EQ(Run({"save"}).status(), "SKIPPED") << "the results of the store have more paths";
  EXPECT_THAT(Run({"load"}).reason(), HasSubstr("autotune results of its own"));
  ASSERT_EQ(Run({"load", "--dir", temp_ / "two"}).status(), "SUCCESS");
  EXPECT_EQ(Read("two/inductor/ab/00.best_config"), "{\"from\": \"one\"}");
}

TEST_F(LoadSaveTest, FilledTorchDirectoryOfAnUnknownMachineIsSkipped) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  temp_.Write("torch/ab/cother.py", "x\n");
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  EXPECT_EQ(Run({"load"}).status(), "SKIPPED");
}

TEST_F(LoadSaveTest, DirectoryOfAnotherCpuClassIsNeverSaved) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  const Outcome other = Run({"save", "--dir", temp_ / "one"}, "intel.json");
  EXPECT_EQ(other.status(), "SKIPPED") << other.reason();
  EXPECT_THAT(other.err, HasSubstr("belongs to GPU type cpu"));
  environment_["TORCHINDUCTOR_CACHE_DIR"] = temp_ / "torch";
  ASSERT_EQ(Run({"load"}).code, 0);
  EXPECT_EQ(Run({"save"}, "intel.json").status(), "ERROR");
  EXPECT_EQ(Run({"load"}, "intel.json").status(), "ERROR");
}

TEST_F(LoadSaveTest, LimitsAreErrorsThatChangeNothing) {
  temp_.Write("one/inductor/ab/cab.py", fakes::Noise(100'000, 1));
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one", "--max-bytes", "1000"}).status(), "ERROR");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one", "--min-free-bytes", "1000000000000000"}).status(),
            "ERROR");
  EXPECT_EQ(Run({"save", "--dir", temp_ / "one", "--allow-dir", temp_ / "two"}).status(), "ERROR");
  EXPECT_EQ(Run({"load", "--dir", temp_ / "two"}).status(), "DOES_NOT_EXIST");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  EXPECT_EQ(Run({"load", "--dir", temp_ / "two", "--max-bytes", "1000"}).status(), "ERROR");
  environment_["MAX_CACHE_SIZE_MB"] = "0x1";
  EXPECT_EQ(Run({"load", "--dir", temp_ / "two"}).status(), "ERROR");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "two/inductor"));
}

TEST_F(LoadSaveTest, LinkIntoAForbiddenDirectoryIsNotAllowed) {
  std::filesystem::create_directories(temp_ / "allowed");
  std::filesystem::create_directories(temp_ / "outside");
  std::filesystem::create_directory_symlink(temp_ / "outside", temp_ / "allowed/link");
  const Outcome outcome =
      Run({"load", "--dir", temp_ / "allowed/link/x", "--allow-dir", temp_ / "allowed"});
  EXPECT_EQ(outcome.status(), "ERROR");
  EXPECT_THAT(outcome.reason(), HasSubstr("not allowed"));
}

TEST_F(LoadSaveTest, EnginesOfThePythonAreInTheKey) {
  const std::string one = MakeVirtualEnvironment(temp_, "one", "1");
  const std::string two = MakeVirtualEnvironment(temp_, "two", "2");
  temp_.Write("cache/inductor/ab/cab.py", "print(1)\n");
  python_ = one;
  ASSERT_EQ(Run({"save", "--dir", temp_ / "cache"}).code, 0);
  python_ = two;
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other"}).status(), "DOES_NOT_EXIST");
  python_ = one;
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other"}).status(), "SUCCESS");
}

TEST_F(LoadSaveTest, MachineOptionsSelectTheBundle) {
  temp_.Write("cache/inductor/ab/cab.py", "print(1)\n");
  int calls = 0;
  const auto load = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"load", "--dir", temp_ / ("other" + std::to_string(++calls))});
    return Run(flags).status();
  };
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--image", "registry/llama:1"}, {"--container", "server"}, {"--devices", "3"}}) {
    SCOPED_TRACE(flag[0]);
    ASSERT_EQ(Run({"save", "--dir", temp_ / "cache", flag[0], flag[1]}).status(), "SUCCESS");
    EXPECT_EQ(load(flag), "SUCCESS");
    EXPECT_EQ(load({flag[0], "9"}), "DOES_NOT_EXIST");
    EXPECT_EQ(load({}), "DOES_NOT_EXIST");
  }
}

TEST_F(LoadSaveTest, NameSelectsTheBundles) {
  temp_.Write("cache/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "cache", "--name", "my-model/v1"}).code, 0);
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other", "--name", "my-model/v2"}).code, 4);
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other", "--name", "my-model/v1"}).code, 0);
}

TEST_F(LoadSaveTest, SignaturesAreCheckedAndMade) {
  temp_.Write("key.pem", bundle::kSigner);
  temp_.Write("key.pub", bundle::kSignerPublic);
  temp_.Write("cache/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "cache"}).code, 0);
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other", "--key", temp_ / "key.pub"}).code, 3);
  ASSERT_EQ(Run({"save", "--dir", temp_ / "cache", "--sign-key", temp_ / "key.pem"}).code, 0);
  EXPECT_EQ(Run({"load", "--dir", temp_ / "other", "--key", temp_ / "key.pub"}).code, 0);
}

TEST_F(LoadSaveTest, StoreThatDoesNotAnswerIsAnErrorAfterMaxWait) {
  fakes::RawServer silent([](fakes::RawConnection& connection, int) {
    connection.ReadRequest();
    connection.BlockUntilStop();
  });
  store_ = "oci://127.0.0.1:" + std::to_string(silent.port());
  const Outcome outcome = Run({"load", "--dir", temp_ / "cache", "--max-wait", "4"});
  EXPECT_EQ(outcome.status(), "ERROR");
  EXPECT_THAT(outcome.reason(), HasSubstr("within 4s (--max-wait)"));
}

TEST_F(LoadSaveTest, StoreOfTheEnvironmentIsUsed) {
  temp_.Write("one/inductor/ab/cab.py", "print(1)\n");
  ASSERT_EQ(Run({"save", "--dir", temp_ / "one"}).code, 0);
  for (const std::string variable : {"CACHEWARM_STORE", "B10FS_CACHE_DIR"}) {
    environment_ = {{variable, temp_ / "store"}};
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out,
                    .err = err,
                    .err_is_terminal = false,
                    .clock = SystemClock(),
                    .environment = environment_};
    const std::vector<std::string> words = {
        "load",     "--dir",       temp_ / variable, "--node-facts", temp_ / "amd.json",
        "--python", "/nonexistent"};
    EXPECT_EQ(RunProgram(words, console), 0) << err.str();
    EXPECT_THAT(err.str(), HasSubstr("SUCCESS: loaded 1 files"));
  }
}

}  // namespace
}  // namespace cachewarm::cli
