// SPDX-License-Identifier: Apache-2.0 Malicious bundles of an attacker with publish rights: nothing
// may be written outside of the staging directory, and a tree is either complete or refused.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/unit/lib/bundle/raw_tar.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

// A staging directory beside a file that must not change.
class Guarded {
 public:
  Guarded() {
    std::ofstream(outside_ / "victim") << "untouched";
    EXPECT_TRUE(outside_.Open().MakeDir("staging", 0755).ok());
  }
  fs::Dir staging() const { return *outside_.Open().OpenDir("staging"); }
  std::string path(const std::string& name) const { return outside_ / name; }

  void ExpectOnly(const std::string& staged_prefix) const {
    for (const auto& [path, content] : ReadTree(outside_.Open())) {
      const bool staged = path.starts_with("staging/");
      EXPECT_TRUE(staged || path == "victim") << path;
      EXPECT_TRUE(!staged || path == "staging/" || path.starts_with("staging/" + staged_prefix))
          << path;
      EXPECT_TRUE(path != "victim" || content == "untouched");
    }
    EXPECT_FALSE(std::filesystem::exists("/tmp/cachewarm-untrusted"));
  }

 private:
  TempDir outside_;
};

absl::Status UnpackRaw(const RawBundle& bundle, const fs::Dir& staging,
                       UnpackOptions options = {}) {
  return Unpack({bundle.config, bundle.manifest, bundle.layer}, staging, std::move(options));
}

struct UntrustedMember {
  std::string name;
  std::vector<RawMember> members;
  std::string message;
};

// Returns a path with the given number of directories, whose names have `name_bytes` bytes.
std::string LongPath(size_t folders, size_t name_bytes) {
  std::string path;
  for (size_t i = 0; i < folders; ++i) {
    path += std::string(name_bytes, 'n') + "/";
  }
  return path + "f";
}

std::vector<UntrustedMember> UntrustedMembers() {
  return {
      {"symbolic link", {{.path = "a", .type = '2', .link = "/etc/passwd"}}, "symbolic link"},
      {"relative link", {{.path = "d/a", .type = '2', .link = "../../victim"}}, "symbolic link"},
      {"link, then a file through it",
       {{.path = "a", .type = '2', .link = ".."}, {.path = "a/victim", .content = "x"}},
       "symbolic link"},
      {"hard link", {{.path = "a", .type = '1', .link = "../victim"}}, "hard link"},
      {"hard link out", {{.path = "a", .type = '1', .link = "/etc/passwd"}}, "hard link"},
      {"character device", {{.path = "a", .type = '3'}}, "device"},
      {"block device", {{.path = "a", .type = '4'}}, "device"},
      {"FIFO", {{.path = "a", .type = '6'}}, "FIFO"},
      {"absolute path", {{.path = "/tmp/cachewarm-untrusted", .content = "x"}}, "absolute"},
      {"parent path", {{.path = "../victim", .content = "x"}}, "\"..\""},
      {"hidden parent", {{.path = "a/../../victim", .content = "x"}}, "\"..\""},
      {"dot", {{.path = "./a", .content = "x"}}, "\".\""},
      {"empty part", {{.path = "a//b", .content = "x"}}, "empty"},
      {"only dots", {{.path = "..", .type = '5'}}, "\"..\""},
      {"setuid", {{.path = "a", .content = "x", .mode = 04755}}, "setuid"},
      {"setgid directory", {{.path = "d", .type = '5', .mode = 02755}}, "setuid"},
      {"sticky", {{.path = "a", .content = "x", .mode = 01644}}, "sticky"},
      {"not UTF-8", {{.path = "a\xff", .content = "x"}}, "UTF-8"},
      {"control character", {{.path = "a\x1b[2J", .content = "x"}}, "control"},
      {"long name",
       {{.path = "a", .content = "x", .pax = {{"path", std::string(300, 'n')}}}},
       "longer than 255"},
      {"long path",
       {{.path = "a", .content = "x", .pax = {{"path", LongPath(6, 200)}}}},
       "longer than 1024"},
      {"deep path", {{.path = "a", .content = "x", .pax = {{"path", LongPath(40, 1)}}}}, "deeper"},
      {"not UTF-8 by pax",
       {{.path = "a",
         .content = "x",
         .pax = {{"path",
                  "a\xc0\xaf"
                  "b"}}}},
       "UTF-8"},
      {"absolute by GNU's long name",
       {{.path = "././@LongLink",
         .type = 'L',
         .content = std::string("/tmp/cachewarm-untrusted") + '\0'},
        {.path = "a", .content = "x"}},
       "absolute"},
      {"size by pax", {{.path = "a", .content = "x", .pax = {{"size", "9000000000000"}}}}, "size"},
      {"absolute by pax",
       {{.path = "a", .content = "x", .pax = {{"path", "/tmp/cachewarm-untrusted"}}}},
       "absolute"},
      {"link by pax", {{.path = "a", .type = '2', .pax = {{"linkpath", "/etc"}}}}, "link"},
      {"sparse",
       {{.path = "a",
         .content = "x",
         .pax = {{"GNU.sparse.major", "0"},
                 {"GNU.sparse.map", "0,1"},
                 {"GNU.sparse.size", "1000"},
                 {"GNU.sparse.numblocks", "1"}}}},
       "sparse"},
      {"sparse bomb of pax 1.0",
       {{.path = "a",
         .content = "1\n0\n1\n",
         .pax = {{"GNU.sparse.major", "1"},
                 {"GNU.sparse.minor", "0"},
                 {"GNU.sparse.name", "a"},
                 {"GNU.sparse.realsize", "1099511627776"}}}},
       ""},
      {"extended attribute",
       {{.path = "a", .content = "x", .pax = {{"SCHILY.xattr.security.capability", "x"}}}},
       "extended attributes"},
      {"not in the list", {{.path = "b", .content = "x"}}, "does not name it"},
      {"directory not in the list", {{.path = "e", .type = '5'}}, "does not name it"},
      {"twice", {{.path = "a", .content = "x"}, {.path = "a", .content = "x"}}, "does not name it"},
      {"larger than listed", {{.path = "a", .content = "xx"}}, "its size is 2"},
      {"smaller than listed", {{.path = "a"}}, "its size is 0"},
      {"other content", {{.path = "a", .content = "y"}}, "does not match its sha256"},
      {"missing", {{.path = "d", .type = '5'}}, "is not in frame 0"},
      {"type of the future", {{.path = "a", .type = 'Z', .link = "x"}}, ""},
  };
}

TEST(CheckMember, RefusesADirectoryWithContent) {
  const Member empty{.path = "d", .type = MemberType::kDirectory};
  EXPECT_TRUE(CheckMember(empty, Limits()).ok());
  Member filled = empty;
  filled.bytes = 1;
  EXPECT_THAT(Message(CheckMember(filled, Limits())), HasSubstr("it is a directory with content"));
}

class UntrustedMembersTest : public ::testing::TestWithParam<int> {};

TEST_P(UntrustedMembersTest, AreRefusedAndChangeNothing) {
  for (const UntrustedMember& member : UntrustedMembers()) {
    const RawBundle bundle =
        BundleOf({RawTar(member.members), TarEnd()}, {EntryOf("a", "x"), EntryOf("d/z", "z", 1)});
    const Guarded guarded;
    const absl::Status status = UnpackRaw(bundle, guarded.staging(), {.threads = GetParam()});
    EXPECT_FALSE(status.ok()) << member.name;
    EXPECT_FALSE(IsRetryable(status)) << member.name << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(member.message)) << member.name;
    // "a" may exist (it precedes the bad member), and "d" is created for the list.
    for (const auto& [path, content] : ReadTree(guarded.staging())) {
      EXPECT_TRUE(path == "a" || path == "d/") << member.name << ": " << path;
    }
    guarded.ExpectOnly("");
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, UntrustedMembersTest, ::testing::Values(1, 4));

TEST(UnusualNames, AreAccepted) {
  for (const std::string name :
       {"a..b.txt", "..a", "a..", "...", "a b", "\xc3\xa9", ".hidden/..x/y", "-rf", "a\\b"}) {
    const RawBundle bundle =
        BundleOf({RawTar({{.path = name, .content = "x"}}), TarEnd()}, {EntryOf(name, "x")});
    const Guarded guarded;
    const absl::Status status = UnpackRaw(bundle, guarded.staging());
    EXPECT_TRUE(status.ok()) << name << status;
    EXPECT_EQ(ReadTree(guarded.staging())[name], "x");
  }
}

TEST(UntrustedTree, RejectsFileAtDirectory) {
  const RawBundle bundle =
      BundleOf({RawTar({{.path = "a", .content = "x"}, {.path = "a/b", .content = "y"}})},
               {EntryOf("a", "x"), EntryOf("a/b", "y")});
  const Guarded guarded;
  EXPECT_FALSE(UnpackRaw(bundle, guarded.staging()).ok());
  guarded.ExpectOnly("a");
}

TEST(UntrustedTree, DoesNotFollowLinkInStaging) {
  const RawBundle bundle =
      BundleOf({RawTar({{.path = "d/victim", .content = "x"}})}, {EntryOf("d/victim", "x")});
  const Guarded guarded;
  const fs::Dir staging = guarded.staging();
  Unpacker unpacker(bundle.config, bundle.manifest, staging, {});
  ASSERT_TRUE(unpacker.Start().ok());
  ASSERT_TRUE(staging.Remove("d").ok());
  ASSERT_EQ(::symlink(guarded.path("").c_str(), (guarded.path("staging") + "/d").c_str()), 0);
  absl::Status status = unpacker.Write(bundle.layer);
  status.Update(unpacker.Finish());
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  guarded.ExpectOnly("d");
}

TEST(UntrustedTree, DoesNotOverwriteStaging) {
  const RawBundle bundle = BundleOf({RawTar({{.path = "a", .content = "x"}})}, {EntryOf("a", "x")});
  const Guarded guarded;
  std::ofstream(guarded.path("staging/a")) << "old";
  EXPECT_TRUE(absl::IsAlreadyExists(UnpackRaw(bundle, guarded.staging())));
  EXPECT_EQ(ReadTree(guarded.staging())["a"], "old");
}

TEST(UntrustedFrames, RejectsContentAfterTheEnd) {
  const std::string content = Noise(1000, 1);
  const std::string tar = RawTar({{.path = "a", .content = content}});
  const std::string head = tar.substr(0, 1024);
  const struct {
    std::string name;
    std::vector<std::string> frames;
  } cases[] = {
      {"a member follows in the last frame",
       {head, tar.substr(1024) + RawTar({{.path = "b", .content = "x"}})}},
      {"padding that is not zero", {head, tar.substr(1024, 488) + std::string(24, 'x')}},
      {"the content never ends", {head, tar.substr(1024, 100)}},
      {"no content at all", {tar.substr(0, 512)}},
  };
  for (const auto& c : cases) {
    const Guarded guarded;
    EXPECT_FALSE(UnpackRaw(BundleOf(c.frames, {EntryOf("a", content)}), guarded.staging()).ok())
        << c.name;
    guarded.ExpectOnly("a");
  }
  const Guarded guarded;
  const absl::Status good = UnpackRaw(
      BundleOf({head, tar.substr(1024), TarEnd()}, {EntryOf("a", content)}), guarded.staging());
  EXPECT_TRUE(good.ok()) << good;
}

TEST(UntrustedFrames, RejectsZstdOfWrongSize) {
  PackedSample sample = PackTree(SampleTree());
  Frame& frame = sample.packed.config.layers[0].frames[0];
  const std::string original = sample.layer.substr(0, static_cast<size_t>(frame.bytes));
  const auto refuse = [&](const Config& config, const std::string& name) {
    const Guarded guarded;
    EXPECT_FALSE(Unpack({config, sample.packed.manifest, sample.layer}, guarded.staging()).ok())
        << name;
  };
  for (const int64_t delta : {-1, 1, 1000}) {
    Config config = sample.packed.config;
    config.layers[0].frames[0].raw_bytes += delta;
    refuse(config, fmt::format("raw size {:+}", delta));
  }
  // Two zstd frames in one frame of the index.
  RawBundle two =
      BundleOf({RawTar({{.path = "a", .content = "x"}}), TarEnd()}, {EntryOf("a", "x")});
  LayerIndex& index = two.config.layers[0];
  index.frames = {{.offset = 0,
                   .bytes = static_cast<int64_t>(two.layer.size()),
                   .raw_bytes = index.frames[0].raw_bytes + index.frames[1].raw_bytes,
                   .digest = DigestOf(two.layer)}};
  const Guarded guarded;
  EXPECT_TRUE(absl::IsDataLoss(UnpackRaw(two, guarded.staging())));
}

TEST(UntrustedIndex, RejectsListThatDoesNotMatchTheLayer) {
  const PackedSample sample = PackTree(SampleTree());
  const auto refuse = [&](const std::string& name, const auto& change) {
    Config config = sample.packed.config;
    Manifest manifest = sample.packed.manifest;
    change(config, manifest);
    // Parse it as a node does.
    const auto text = WriteConfig(config);
    const auto read = text.ok() ? ParseConfig(*text) : text.status();
    const Guarded guarded;
    const absl::Status status =
        read.ok() ? Unpack({*read, manifest, sample.layer}, guarded.staging()) : read.status();
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_FALSE(IsRetryable(status)) << name << status;
    EXPECT_FALSE(Message(status).empty()) << name;
    guarded.ExpectOnly("");
  };
  refuse("one entry less", [](Config& c, Manifest&) { c.entries.pop_back(); });
  refuse("one entry more", [](Config& c, Manifest&) { c.entries.push_back(EntryOf("zz", "")); });
  refuse("other frame", [](Config& c, Manifest&) { ++c.entries[0].frame; });
  refuse("other size", [](Config& c, Manifest&) { ++c.entries[0].bytes; });
  refuse("other mtime", [](Config& c, Manifest&) { ++c.entries[0].mtime_ns; });
  refuse("other digest", [](Config& c, Manifest&) { c.entries[0].digest = DigestOf("?"); });
  refuse("one frame less", [](Config& c, Manifest&) { c.layers[0].frames.pop_back(); });
  refuse("no layer", [](Config& c, Manifest&) { c.layers.clear(); });
  refuse("layer longer", [](Config&, Manifest& m) { ++m.layers[0].bytes; });
  refuse("one layer more", [](Config&, Manifest& m) { m.layers.push_back(m.layers[0]); });
  refuse("offset moved", [](Config& c, Manifest&) { ++c.layers[0].frames[1].offset; });
  refuse("frames that overlap", [](Config& c, Manifest&) {
    --c.layers[0].frames[1].offset;
    ++c.layers[0].frames[1].bytes;
  });
  refuse("a gap between frames", [](Config& c, Manifest&) {
    ++c.layers[0].frames[1].offset;
    --c.layers[0].frames[1].bytes;
  });
  refuse("a frame's end moved", [](Config& c, Manifest&) {
    ++c.layers[0].frames[0].bytes;
    ++c.layers[0].frames[1].offset;
    --c.layers[0].frames[1].bytes;
  });
  refuse("frames exchanged",
         [](Config& c, Manifest&) { std::swap(c.layers[0].frames[0], c.layers[0].frames[1]); });
  refuse("negative frame", [](Config& c, Manifest&) { c.layers[0].frames[0].bytes = -1; });
  refuse("negative raw size", [](Config& c, Manifest&) { c.layers[0].frames[0].raw_bytes = -1; });
  refuse("raw sizes exchanged", [](Config& c, Manifest&) {
    std::swap(c.layers[0].frames[0].raw_bytes, c.layers[0].frames.back().raw_bytes);
  });
  refuse("entries of two frames exchanged",
         [](Config& c, Manifest&) { std::swap(c.entries.front().frame, c.entries.back().frame); });
  refuse("entry in no frame", [](Config& c, Manifest&) { c.entries[0].frame = 1000; });
  refuse("entry before all frames", [](Config& c, Manifest&) { c.entries[0].frame = -1; });
  refuse("frame larger than zstd makes it",
         [](Config& c, Manifest&) { c.layers[0].frames[0].raw_bytes = 1; });
  refuse("frame digest",
         [](Config& c, Manifest&) { c.layers[0].frames[0].digest = DigestOf("?"); });
}

TEST(UntrustedSizes, EnforcesLimitsBeforeWriting) {
  const PackedSample sample = PackTree(SampleTree());
  const struct {
    Limits limits;
    std::string message;
  } cases[] = {{{.entries_max = 7}, "8 files, more than 7"},
               {{.file_bytes_max = 19'999}, "its size 20000 is not between"},
               {{.total_bytes_max = 20'000}, "bytes uncompressed"},
               {{.frame_raw_bytes_max = 4095}, "a frame of layer 0"},
               {{.path_bytes_max = 100}, "longer than 100"},
               {{.name_bytes_max = 150}, "longer than 150"},
               {{.depth_max = 1}, "deeper than 1"}};
  for (const auto& c : cases) {
    const Guarded guarded;
    const absl::Status status = Unpack(sample, guarded.staging(), {.limits = c.limits});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(UntrustedSizes, RejectsAMillionEntries) {
  PackedSample sample = PackTree(SampleTree());
  sample.packed.config.entries.resize(1'000'000);
  const Guarded guarded;
  const absl::Status status = Unpack(sample, guarded.staging());
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1000000 files, more than 200000 (limits.files)"));
  EXPECT_TRUE(ReadTree(guarded.staging()).empty());
}

TEST(UntrustedSizes, RejectsZipBombByRatio) {
  const int64_t bytes = 65LL << 20;
  const PackedSample bomb =
      PackTree({{"zeros", {.content = std::string(size_t{bytes}, '\0')}}}, 4LL << 20);
  const Guarded guarded;
  const absl::Status status = Unpack(bomb, guarded.staging());
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 400 to 1 (limits.ratio)"));
  EXPECT_TRUE(ReadTree(guarded.staging()).empty());
}

TEST(DamagedLayer, EveryTruncationIsDetected) {
  const PackedSample sample = PackTree(SampleTree());
  for (size_t size = 0; size < sample.layer.size(); size += 97) {
    const Guarded guarded;
    const absl::Status status =
        Unpack({sample.packed.config, sample.packed.manifest, sample.layer.substr(0, size)},
               guarded.staging());
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << ": " << status;
  }
  const Guarded guarded;
  EXPECT_TRUE(absl::IsDataLoss(Unpack(
      {sample.packed.config, sample.packed.manifest, sample.layer + "x"}, guarded.staging())));
}

TEST(FullDisk, IsResourceExhausted) {
  const PackedSample sample = PackTree(SampleTree());
  const Guarded guarded;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = Unpack(sample, guarded.staging());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace cachewarm::bundle
