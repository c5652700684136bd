// SPDX-License-Identifier: Apache-2.0
// "cachewarm export": artifacts in the format of torch.
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/unit/cli/megacache/fixture.h"
#include "tests/unit/cli/virtual_environment.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ExportTest : public MegacacheFixture {
 protected:
  ExportTest() { EXPECT_EQ(Import({"--dir", temp_ / "cache", "--with", temp_ / "torch"}).code, 0); }

  // The entries of the artifact of MegacacheFixture in the order of their paths.
  std::vector<std::string> Expected() const {
    return {"autotune ab/00112233.best_config {\"num_warps\": 4}", "aot_autograd aabcd1 aot",
            "precompile 0a1b2c3d function", "pgo job_0_ second", "inductor fabcd1 " + graph_};
  }
  // Publishes the cache directory with `flags`; returns the full name of the bundle.
  std::string Publish(std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--dir", temp_ / "cache", "--store", temp_ / "store", "--name",
                               "llama", "--json"});
    return Parsed(Import(std::move(flags)))["bundle"];
  }
  Outcome ExportTo(const std::string& file, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--output", temp_ / file});
    return Export(std::move(flags));
  }
};

TEST_F(ExportTest, WritesEveryEntryOfADirectory) {
  const Outcome outcome = ExportTo("out.bin", {"--dir", temp_ / "cache"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, temp_ / "out.bin" + "\n");
  EXPECT_EQ(EntriesOf("out.bin"), Expected());
  EXPECT_THAT(
      outcome.err,
      HasSubstr("exported 1 aot_autograd, 1 autotune, 1 inductor, 1 pgo, 1 precompile of "));
  EXPECT_THAT(outcome.err, HasSubstr("compiles 2 kernels again"));
  EXPECT_EQ(ExportTo("inner.bin", {"--dir", temp_ / "cache/inductor"}).code, 0);
  EXPECT_EQ(Read("inner.bin"), Read("out.bin")) << "a directory of torch alone";
}

TEST_F(ExportTest, ImportOfAnExportGivesTheSameEntries) {
  ASSERT_EQ(ExportTo("artifact.bin", {"--dir", temp_ / "cache"}).code, 0);
  ASSERT_EQ(Import({"--dir", temp_ / "again", "--with", temp_ / "cache"}).code, 0);
  ASSERT_EQ(ExportTo("again.bin", {"--dir", temp_ / "again"}).code, 0);
  EXPECT_EQ(Read("again.bin"), Read("artifact.bin"));
}

TEST_F(ExportTest, OutputReplacesAFileAndMayBeShort) {
  temp_.Write("out.bin", "old");
  const Outcome outcome = Export({"--dir", temp_ / "cache", "-o", temp_ / "out.bin", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const codec::Json json = Parsed(outcome);
  EXPECT_EQ(json["source"], temp_ / "cache");
  EXPECT_EQ(json["output"], temp_ / "out.bin");
  EXPECT_EQ(json["bytes"], Read("out.bin").size());
  EXPECT_EQ(json["entries"]["inductor"], 1);
  EXPECT_EQ(json["kernels"], 2);
  EXPECT_TRUE(json["damaged"].empty());
  const Outcome without = Export({"--dir", temp_ / "cache"});
  EXPECT_EQ(without.code, kUsage);
  EXPECT_THAT(without.err, HasSubstr("--output: required"));
  EXPECT_THAT(ExportTo("missing/out.bin", {"--dir", temp_ / "cache"}).err, HasSubstr("missing"));
}

TEST_F(ExportTest, DirectoryIsThatOfTorchOrOfTheName) {
  environment_ = {{"TORCHINDUCTOR_CACHE_DIR", temp_ / "cache/inductor"}};
  EXPECT_EQ(ExportTo("one.bin", {}).code, 0);
  EXPECT_EQ(EntriesOf("one.bin"), Expected());
  environment_ = {{"HOME", temp_ / "home"}};
  ASSERT_EQ(Import({"--name", "llama"}).code, 0);
  EXPECT_EQ(ExportTo("two.bin", {"--name", "llama"}).code, 0);
  EXPECT_EQ(EntriesOf("two.bin"), Expected());
  EXPECT_EQ(ExportTo("three.bin", {"--name", "other"}).code, kNotFound);
}

TEST_F(ExportTest, BundleIsExported) {
  const std::string bundle = Publish();
  const Outcome outcome = ExportTo("out.bin", {"--bundle", bundle});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(EntriesOf("out.bin"), Expected());
  EXPECT_THAT(outcome.err, HasSubstr("of layout://" + temp_ / "store/llama@sha256:"));
  EXPECT_EQ(ExportTo("out.bin", {"--bundle", bundle + "0"}).code, kNotFound);
}

TEST_F(ExportTest, BundleOfThisMachineIsExportedFromTheStore) {
  Publish();
  const std::vector<std::string> store = {"--store", temp_ / "store", "--name", "llama"};
  ASSERT_EQ(ExportTo("out.bin", store).code, 0);
  EXPECT_EQ(EntriesOf("out.bin"), Expected());
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--image", "registry/llama:1"}, {"--container", "server"}, {"--devices", "3"}}) {
    std::vector<std::string> other = store;
    other.insert(other.end(), flag.begin(), flag.end());
    EXPECT_EQ(ExportTo("none.bin", other).code, kNotFound) << flag[0];
  }
  temp_.Write("facts.json", R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21"})");
  EXPECT_EQ(ExportTo("none.bin", store).code, kNotFound) << "the machine of --node-facts";
}

TEST_F(ExportTest, EnginesOfThePythonSelectTheBundle) {
  const std::string python = MakeVirtualEnvironment(temp_, "venv", "1");
  Publish();
  EXPECT_EQ(Run({"export", "--node-facts", temp_ / "facts.json", "--python", python, "--store",
                 temp_ / "store", "--name", "llama", "--output", temp_ / "out.bin"})
                .code,
            kNotFound);
}

TEST_F(ExportTest, UnsignedBundleIsRefusedWithAKey) {
  temp_.Write("key.pem", bundle::kSigner);
  temp_.Write("key.pub", bundle::kSignerPublic);
  const std::string bundle = Publish();
  const std::vector<std::string> store = {"--store", temp_ / "store", "--name",
                                          "llama",   "--key",         temp_ / "key.pub"};
  EXPECT_EQ(ExportTo("out.bin", {"--bundle", bundle, "--key", temp_ / "key.pub"}).code, kDamaged);
  EXPECT_EQ(ExportTo("out.bin", store).code, kDamaged);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out.bin"));
  ASSERT_EQ(Run({"sign", bundle, "--key", temp_ / "key.pem"}).code, 0);
  EXPECT_EQ(ExportTo("out.bin", {"--bundle", bundle, "--key", temp_ / "key.pub"}).code, 0);
  EXPECT_EQ(ExportTo("out.bin", store).code, 0);
}

TEST_F(ExportTest, OneSourceIsAccepted) {
  const Outcome outcome =
      ExportTo("out.bin", {"--dir", temp_ / "cache", "--store", temp_ / "store"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--bundle, --store, --dir: give only one of them"));
}

TEST_F(ExportTest, DamagedEntriesAreSkipped) {
  temp_.Write("cache/" + GraphPath(graph_) + "x", "its name is not its hash");
  temp_.Write("cache/inductor/dynamo/empty123/entry", "");
  std::filesystem::create_symlink(temp_ / "facts.json",
                                  temp_ / "cache/inductor/ab/99999999.best_config");
  const Outcome outcome = ExportTo("out.bin", {"--dir", temp_ / "cache"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(EntriesOf("out.bin"), Expected());
  EXPECT_THAT(outcome.err, HasSubstr("x: its name is not the hash of its content"));
  EXPECT_THAT(outcome.err, HasSubstr("dynamo/empty123/entry: it is empty"));
  const codec::Json json = Parsed(ExportTo("out.bin", {"--dir", temp_ / "cache", "--json"}));
  EXPECT_EQ(json["damaged"].size(), 2U);
}

TEST_F(ExportTest, CacheWithoutEntriesIsAnError) {
  const Outcome outcome = ExportTo("out.bin", {"--dir", temp_ / "tree"});
  EXPECT_EQ(outcome.code, kNotFound);
  EXPECT_THAT(outcome.err, HasSubstr("no entries of torch.compile found"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out.bin"));
}

TEST_F(ExportTest, ScratchDirectoryIsRemoved) {
  const auto scratch = [] {
    int count = 0;
    for (const auto& each :
         std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      count += each.path().filename().string().starts_with("cachewarm-export-") ? 1 : 0;
    }
    return count;
  };
  const int before = scratch();
  ASSERT_EQ(ExportTo("out.bin", {"--bundle", Publish()}).code, 0);
  EXPECT_EQ(scratch(), before);
}

TEST_F(ExportTest, ProgressIsShownOnATerminalUnlessQuiet) {
  const std::string bundle = Publish();
  is_terminal_ = true;
  EXPECT_THAT(ExportTo("out.bin", {"--bundle", bundle}).err, HasSubstr("fetching "));
  EXPECT_THAT(ExportTo("out.bin", {"--bundle", bundle, "--quiet"}).err,
              Not(HasSubstr("fetching ")));
}

}  // namespace
}  // namespace cachewarm::cli
