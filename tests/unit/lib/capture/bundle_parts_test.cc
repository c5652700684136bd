// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/bundle_parts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lib/capture/tree_listing.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

bundle::Facts Facts(const fingerprint::NodeFacts& node, const Selection& selection) {
  const api::KeyFactors factors{.gpu_type = "nvidia/a10/sm_86",
                                .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
                                .image = "llama:1",
                                .devices = 2,
                                .container = "server"};
  return FactsOf({.key = "k", .factors = factors, .node = node}, selection);
}

TEST(FactsOf, ContainsKeyFactorsAndNode) {
  fingerprint::NodeFacts node;
  node.gpu_type = "nvidia/a10/sm_86";
  node.driver_version = "570.86.15";
  node.cpu.flags = {"avx", "avx2"};
  Selection selection;
  selection.native = true;
  selection.gpu_architectures = {"sm_86"};
  selection.engines = {{"triton", "3.7.1"}};
  selection.compile_time.graph_ns = 1'500'000'000;
  const bundle::Facts facts = Facts(node, selection);
  EXPECT_EQ(facts.key, "k");
  EXPECT_EQ(facts.factors.at("gpuType"), "nvidia/a10/sm_86");
  EXPECT_EQ(facts.factors.at("cpuClass"), "x86-64-v3/intel-6-85/0123abcd");
  EXPECT_EQ(facts.factors.at("image"), "llama:1");
  EXPECT_EQ(facts.factors.at("devices"), "2");
  EXPECT_EQ(facts.factors.at("container"), "server");
  EXPECT_EQ(facts.node.at("driver"), "570.86.15");
  EXPECT_EQ(facts.node.at("cpuFlags"), "avx avx2");
  EXPECT_TRUE(facts.requires_cpu_class);
  EXPECT_EQ(facts.engines.at("triton"), "3.7.1");
  EXPECT_EQ(facts.gpu_architectures, std::vector<std::string>{"sm_86"});
  EXPECT_EQ(facts.compile_milliseconds, 1500);
}

TEST(FactsOf, BindsEveryBundleOfACpuNodeToItsClass) {
  const fingerprint::NodeFacts node;
  const Selection selection;
  const auto facts = [&](const std::string& gpu_type) {
    const api::KeyFactors factors{.gpu_type = gpu_type,
                                  .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
                                  .image = "llama:1",
                                  .devices = 0,
                                  .container = "server"};
    return FactsOf({.key = "k", .factors = factors, .node = node}, selection);
  };
  EXPECT_TRUE(facts("cpu").requires_cpu_class);
  EXPECT_FALSE(facts("nvidia/a10/sm_86").requires_cpu_class);
}

TEST(FactsOf, UsesOciNameOfTheArchitecture) {
  for (const auto& [architecture, expected] :
       {std::pair{"aarch64", "arm64"}, std::pair{"x86_64", "amd64"}, std::pair{"", "amd64"}}) {
    fingerprint::NodeFacts node;
    node.cpu.architecture = architecture;
    EXPECT_EQ(Facts(node, {}).architecture, expected) << architecture;
  }
}

TEST(UniteFacts, CombinesRequirementsAndKeepsFirstNode) {
  const bundle::Facts kept{.key = "k",
                           .node = {{"driver", "570"}},
                           .engines = {{"torch", "2.13.0"}},
                           .gpu_architectures = {"sm_86", "sm_90"},
                           .compile_milliseconds = 900};
  const bundle::Facts newer{.key = "k",
                            .node = {{"driver", "575"}},
                            .engines = {{"torch", "2.15.0"}, {"triton", "3.9.0"}},
                            .requires_cpu_class = true,
                            .gpu_architectures = {"sm_80", "sm_90"},
                            .compile_milliseconds = 1200};
  const bundle::Facts both = UniteFacts(kept, newer);
  EXPECT_EQ(both.node.at("driver"), "570");
  EXPECT_EQ(both.engines.at("torch"), "2.13.0") << "the older bundle is the base";
  EXPECT_EQ(both.engines.at("triton"), "3.9.0");
  EXPECT_TRUE(both.requires_cpu_class);
  EXPECT_EQ(both.gpu_architectures, (std::vector<std::string>{"sm_80", "sm_86", "sm_90"}));
  EXPECT_EQ(both.compile_milliseconds, 1200);
  EXPECT_EQ(UniteFacts(both, newer), both) << "known facts change nothing";
  EXPECT_EQ(UniteFacts(both, kept), both);
}

class PackFiles : public ::testing::Test {
 protected:
  PackFiles() {
    scratch_.Write(kIndexFile, "index");
    scratch_.Write(kObjectFile, SharedObject("code"));
  }

  std::vector<bundle::PackFile> Take() {
    TreeListing listing = *ListTree(tree_, caches::CacheTable::AllPresets());
    const Selection selection = *SelectFiles(std::move(listing.files), {.tree = tree_});
    return PackFilesOf(selection, {.tree = tree_, .on_opening = [this](const std::string& path) {
                                     opened_.push_back(path);
                                   }});
  }

  TempDir scratch_;
  fs::Dir tree_ = scratch_.Open();
  std::vector<std::string> opened_;
};

TEST_F(PackFiles, OutliveTheSelection) {
  const std::vector<bundle::PackFile> files = Take();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, kObjectFile);
  EXPECT_EQ(files[0].kind, "torchinductor");
  EXPECT_EQ(files[0].bytes, static_cast<int64_t>(SharedObject("code").size()));
  EXPECT_EQ(files[0].mtime_ns, 0);
  EXPECT_EQ(files[1].path, kIndexFile);
  EXPECT_TRUE(opened_.empty());
  ASSERT_TRUE(files[1].open().ok());
  EXPECT_EQ(opened_, std::vector<std::string>{kIndexFile});
}

TEST_F(PackFiles, OpenFailsForChangedFile) {
  const std::vector<bundle::PackFile> files = Take();
  scratch_.Write(kIndexFile, "xedni");
  EXPECT_TRUE(absl::IsAborted(files[1].open().status()));
  std::filesystem::remove(scratch_ / kObjectFile);
  EXPECT_TRUE(absl::IsAborted(files[0].open().status()));
}

}  // namespace
}  // namespace cachewarm::capture
