// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/layout.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::megacache {
namespace {

using ::testing::HasSubstr;

// Keys and paths of torch 2.15; the hash is that of the content "one".
constexpr char kFx[] = "fcpr4linumwp5aex7kwkwqc5bdxdjqfqlkp57zmsufcpzocdjvrs";
constexpr char kAot[] = "aejvb6kamnnnw2x3bugfu262xml4zmbvli4tzlx6fyt5u2thcxuw";
constexpr char kOne[] = "o2jmhljvic5yapacbm5o4zwnrcdremru5igg44kdycw5op7ughw";

struct Placed {
  const char* type;
  std::string key;
  std::string path;
  std::string key_of_path;  // differs from `key` if the path has lost characters
};

TEST(Layout, PlacesEntriesWhereTorchLooksForThem) {
  const std::string best = std::string(64, 'a') + ".best_config";
  const Placed placed[] = {
      {"inductor", kFx, std::string("fxgraph/cp/") + kFx + "/" + kOne, kFx},
      {"aot_autograd", kAot, std::string("aotautograd/") + kAot + "/" + kOne, kAot},
      {"autotune", "ab/" + best, "ab/" + best, "ab/" + best},
      {"pgo", "job1:None:", "dynamo/code_state_job1_None_.pkl", "job1_None_"},
      {"pgo", "a/../b", "dynamo/code_state_a_.._b.pkl", "a_.._b"},
      {"pgo", "<>:\"/\\|?*", "dynamo/code_state__________.pkl", "_________"},
      {"precompile", "0a1b", "dynamo/0a1b/entry", "0a1b"}};
  for (const Placed& each : placed) {
    SCOPED_TRACE(each.path);
    const auto path = PathOf({each.type, each.key, "one"});
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, each.path);
    const auto name = NameOf(each.path);
    ASSERT_TRUE(name.has_value());
    EXPECT_EQ(name->type, each.type);
    EXPECT_EQ(name->key, each.key_of_path);
    EXPECT_EQ(name->named_by_content, each.path.ends_with(kOne));
    EXPECT_EQ(*PathOf({name->type, name->key, "one"}), each.path);
  }
}

TEST(Layout, KeysThatWouldLeaveTheDirectoryAreRefused) {
  const std::pair<const char*, std::string> entries[] = {{"inductor", ""},
                                                         {"inductor", "f"},
                                                         {"inductor", "../../../etc/cron.d/x"},
                                                         {"inductor", "f../abcd"},
                                                         {"inductor", std::string("fab\0cd", 6)},
                                                         {"inductor", std::string(129, 'f')},
                                                         {"aot_autograd", ".."},
                                                         {"aot_autograd", "/etc/passwd"},
                                                         {"precompile", "a/b/c"},
                                                         {"precompile", "...."},
                                                         {"autotune", "ab/x.best_config"},
                                                         {"autotune", "../abcd.best_config"},
                                                         {"autotune", "ab/cd/abcd.best_config"},
                                                         {"autotune", "/abcd.best_config"},
                                                         {"autotune", "ab/abcd.py"},
                                                         {"autotune", "abcd.best_config"},
                                                         {"pgo", ""},
                                                         {"pgo", "line\nbreak"},
                                                         {"pgo", std::string("nul\0", 4)},
                                                         {"pgo", std::string(231, 'j')}};
  for (const auto& [type, key] : entries) {
    const auto path = PathOf({type, key, "one"});
    EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument) << type << " " << key;
    EXPECT_THAT(std::string(path.status().message()), HasSubstr(type));
  }
}

TEST(Layout, UnknownTypeIsNamed) {
  const auto path = PathOf({"sqlite", "abcd", "one"});
  EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(path.status().message()),
              HasSubstr("\"sqlite\" are unknown; this cachewarm knows inductor"));
}

TEST(Layout, MessageShowsNoControlCharacters) {
  const auto path = PathOf({"inductor", "f\x1b[2J\xc3\xa9", "one"});
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("\"f?[2J??\""));
}

TEST(Layout, OtherFilesAreNoEntries) {
  const std::string fx = kFx;
  for (const std::string& path : std::vector<std::string>{
           "", "/", "ab/cab.py", "ab/cab.main.so", "fxgraph", "fxgraph/cp/" + fx,
           "fxgraph/xx/" + fx + "/" + kOne, "fxgraph/cp/" + fx + "/.1.2.tmp",
           "fxgraph/cp/" + fx + "/", "fxgraph/cp/" + fx + "/a/b", "aotautograd/" + fx,
           "aotautograd/" + fx + "/.tmp", "dynamo/code_state_.pkl", "dynamo/code_state_j.pkl.lock",
           "dynamo/0a1b/other", "dynamo/x/y/entry", "ab/abcd.best_config.tmp", "locks/x.lock"}) {
    EXPECT_FALSE(NameOf(path).has_value()) << path;
  }
}

TEST(Layout, EntryOfAnOldTorchIsNotNamedByItsContent) {
  const auto name = NameOf(std::string("aotautograd/") + kAot + "/entry");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->type, "aot_autograd");
  EXPECT_FALSE(name->named_by_content);
}

TEST(Layout, ContentNameIsTheHashOfInductor) {
  // base64.b32encode(hashlib.sha256(content).digest())[:51].decode().lower()
  EXPECT_EQ(ContentName("one"), kOne);
  EXPECT_EQ(ContentName(""), "4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbk");
}

}  // namespace
}  // namespace cachewarm::megacache
