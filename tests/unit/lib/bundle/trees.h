// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/bundle/packer.h"
#include "lib/bundle/unpacker.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"
#include "tests/fakes/noise.h"
#include "tests/fakes/temp_dir.h"

// Small trees and bundles for tests.
namespace cachewarm::bundle {

struct TestFile {
  std::string content;
  std::string kind = "torchinductor";
  int64_t mtime_ns = 0;
};
using TestTree = std::map<std::string, TestFile>;

// A source that owns its text.
class OwnedSource : public Source {
 public:
  explicit OwnedSource(std::string text) : text_(std::move(text)), source_(text_) {}
  absl::StatusOr<size_t> Read(std::span<char> buffer) override { return source_.Read(buffer); }

 private:
  std::string text_;
  TextSource source_;
};

inline PackFile FileOf(const std::string& path, const TestFile& file) {
  return {.path = path,
          .kind = file.kind,
          .bytes = static_cast<int64_t>(file.content.size()),
          .mtime_ns = file.mtime_ns,
          .open = [content = file.content]() -> absl::StatusOr<std::unique_ptr<Source>> {
            return std::make_unique<OwnedSource>(content);
          }};
}

inline std::vector<PackFile> FilesOf(const TestTree& tree) {
  std::vector<PackFile> files;
  for (const auto& [path, file] : tree) {
    files.push_back(FileOf(path, file));
  }
  return files;
}

using fakes::Noise;

// Returns a file for every case of the format: empty, one block, long path, nanoseconds, UTF-8,
// larger than a frame of 4 KiB.
inline TestTree SampleTree() {
  return {{"inductor/ab/cab.py", {.content = "print('hello')\n"}},
          {"inductor/ab/empty", {.content = ""}},
          {"inductor/block", {.content = std::string(512, 'b')}},
          {"inductor/large.so", {.content = Noise(20'000, 1)}},
          {"inductor/" + std::string(200, 'x') + "/" + std::string(180, 'y'), {.content = "long"}},
          {"flashinfer/build.ninja",
           {.content = "rule", .kind = "flashinfer", .mtime_ns = 1'700'000'000'123'456'789}},
          {"triton/\xc3\xa9t\xc3\xa9.cubin", {.content = Noise(4096, 2), .kind = "triton"}},
          {"z", {.content = "last"}}};
}

// Returns hundreds of small files in many directories, and some that span frames of 4 KiB.
inline TestTree ManyFiles() {
  TestTree tree;
  for (size_t i = 0; i < 300; ++i) {
    tree["triton/" + std::to_string(i % 37) + "/d" + std::to_string(i % 5) + "/f" +
         std::to_string(i)] = {.content = Noise(i * 97 % 2900, static_cast<uint32_t>(i)) +
                                          std::string(i % 50 == 0 ? 30'000 : i * 3, 'x')};
  }
  return tree;
}

inline Facts SampleFacts() {
  return {.key = std::string(64, 'a'),
          .factors = {{"gpuType", "nvidia/h100-80gb-hbm3/sm_90"}, {"container", "main"}},
          .node = {{"driver", "570.10"}},
          .engines = {{"torch", "2.15.0"}},
          .requires_cpu_class = true,
          .gpu_architectures = {"sm_90"},
          .compile_milliseconds = 12'345};
}

// Collects the bytes of a layer, at most `bytes_max`.
class LayerText : public LayerSink {
 public:
  explicit LayerText(size_t bytes_max) : text_(bytes_max) {}
  absl::Status Write(std::string_view bytes) override { return text_.Write(bytes); }
  absl::StatusOr<Descriptor> End() override {
    return Descriptor{.digest = DigestOf(text()), .bytes = static_cast<int64_t>(text().size())};
  }
  std::string& text() { return text_.text(); }

 private:
  TextSink text_;
};

struct PackedSample {
  Packed packed;
  std::string layer;
};

inline PackedSample PackTree(const TestTree& tree, int64_t frame_bytes = 4096,
                             int threads = DefaultThreads()) {
  PackedSample sample;
  LayerText layer(64U << 20U);
  auto packed = Pack(FilesOf(tree), SampleFacts(), {.frame_bytes = frame_bytes, .threads = threads},
                     layer, std::stop_token());
  EXPECT_TRUE(packed.ok()) << packed.status();
  if (packed.ok()) {
    sample.packed = *std::move(packed);
  }
  sample.layer = std::move(layer.text());
  return sample;
}

// Calls Start(), writes all of `layer` in pieces and calls Finish(). Returns the first error.
struct UnpackCall {
  const Config& config;
  const Manifest& manifest;
  std::string_view layer;
  size_t piece_bytes = 1000;
};
// Returns the bytes of Unpacker::runs() from concatenated layers. Returns all bytes of a single
// layer, including those outside of the runs.
inline std::string CutRuns(const UnpackCall& call, const Unpacker& unpacker) {
  if (call.manifest.layers.size() == 1) {
    return std::string(call.layer);
  }
  std::string cut;
  for (const FrameRun& run : unpacker.runs()) {
    int64_t begin = run.offset;
    for (size_t layer = 0; layer < run.layer; ++layer) {
      begin += call.manifest.layers[layer].bytes;
    }
    cut += call.layer.substr(static_cast<size_t>(begin), static_cast<size_t>(run.bytes));
  }
  return cut;
}

inline absl::Status Unpack(const UnpackCall& call, const fs::Dir& staging,
                           UnpackOptions options = {.sync = false}) {
  Unpacker unpacker(call.config, call.manifest, staging, std::move(options));
  absl::Status status = unpacker.Start();
  const std::string bytes = status.ok() ? CutRuns(call, unpacker) : "";
  for (size_t at = 0; at < bytes.size() && status.ok(); at += call.piece_bytes) {
    status = unpacker.Write(std::string_view(bytes).substr(at, call.piece_bytes));
  }
  return status.ok() ? unpacker.Finish() : status;
}
inline absl::Status Unpack(const PackedSample& sample, const fs::Dir& staging,
                           UnpackOptions options = {.sync = false}) {
  return Unpack({sample.packed.config, sample.packed.manifest, sample.layer}, staging,
                std::move(options));
}

// Returns the content of every file by path; the paths of directories end with a slash.
inline std::map<std::string, std::string> ReadTree(const fs::Dir& dir) {
  std::map<std::string, std::string> found;
  EXPECT_TRUE(fs::Walk(dir, "", {}, [&](const fs::WalkEntry& entry) {
                if (entry.stat.type == fs::FileType::kFile) {
                  found[entry.path] = *fs::ReadFile(dir, entry.path, 64LL << 20);
                } else {
                  found[entry.path + "/"] = "";
                }
                return fs::WalkNext::kContinue;
              }).ok());
  return found;
}

inline std::map<std::string, std::string> ExpectedTree(const TestTree& tree) {
  std::map<std::string, std::string> expected;
  for (const auto& [path, file] : tree) {
    expected[path] = file.content;
    for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      expected[path.substr(0, end + 1)] = "";
    }
  }
  return expected;
}

}  // namespace cachewarm::bundle
