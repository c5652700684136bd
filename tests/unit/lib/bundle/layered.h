// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "lib/bundle/buffer.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/tar.h"
#include "tests/unit/lib/bundle/trees.h"

// Builds bundles of several layers for tests.
namespace cachewarm::bundle {

// A bundle and the bytes of all its layers, the oldest first.
struct Made {
  Bundle bundle;
  std::string layers;
  int64_t new_bytes = 0;
};

inline Made MakeWith(const TestTree& tree, const Made* base, PackOptions options) {
  LayerText layer(64U << 20U);
  options.base = base == nullptr ? nullptr : &base->bundle;
  auto packed = Pack(FilesOf(tree), SampleFacts(), options, layer, std::stop_token());
  EXPECT_TRUE(packed.ok()) << packed.status();
  Made made{.bundle = {.digest = packed->digest,
                       .manifest = packed->manifest,
                       .config = *ParseConfig(packed->config_text)},
            .new_bytes = static_cast<int64_t>(layer.text().size())};
  if (base != nullptr && made.bundle.manifest.layers.size() > 1) {
    made.layers = base->layers;
  }
  made.layers += layer.text();
  return made;
}

inline Made Make(const TestTree& tree, const Made* base = nullptr, int threads = DefaultThreads(),
                 int64_t frame_bytes = 4096) {
  return MakeWith(tree, base, {.frame_bytes = frame_bytes, .threads = threads});
}

inline std::map<std::string, std::string> Unpacked(const Made& made,
                                                   UnpackOptions options = {.sync = false}) {
  const TempDir staging;
  const absl::Status status =
      Unpack({made.bundle.config, made.bundle.manifest, made.layers}, staging.Open(), options);
  EXPECT_TRUE(status.ok()) << status;
  return ReadTree(staging.Open());
}

// Extracts the layers as a tool does that does not know the entry list.
inline std::map<std::string, std::string> AsOthersSeeIt(const Made& made) {
  std::map<std::string, std::string> tree;
  size_t at = 0;
  for (const LayerIndex& layer : made.bundle.config.layers) {
    std::string tar;
    for (const Frame& frame : layer.frames) {
      Buffer raw;
      EXPECT_TRUE(
          FrameReader()
              .Decompress(
                  std::string_view(made.layers).substr(at, static_cast<size_t>(frame.bytes)),
                  static_cast<size_t>(frame.raw_bytes), raw)
              .ok());
      tar += raw.view();
      at += static_cast<size_t>(frame.bytes);
    }
    EXPECT_EQ(DigestOf(tar), layer.diff_id);
    TarReader reader(tar);
    while (true) {
      const auto member = reader.Next();
      EXPECT_TRUE(member.ok()) << member.status();
      if (!member.ok() || !member->has_value()) {
        break;
      }
      const std::string& path = (*member)->path;
      if (IsWhiteout(path)) {
        std::string gone = path;
        gone.erase(gone.rfind(".wh."), 4);
        std::erase_if(tree, [&](const auto& file) {
          return file.first == gone || file.first.starts_with(gone + "/");
        });
      } else if ((*member)->type == MemberType::kHardLink) {
        tree[path] = tree[(*member)->link];
      } else if ((*member)->type == MemberType::kFile) {
        std::erase_if(tree, [&](const auto& file) { return file.first.starts_with(path + "/"); });
        tree[path] = (*member)->bytes > 0 ? std::string(*reader.Content()) : "";
      } else {
        tree.erase(path);
      }
    }
  }
  return tree;
}

inline std::map<std::string, std::string> Contents(const TestTree& tree) {
  std::map<std::string, std::string> contents;
  for (const auto& [path, file] : tree) {
    contents[path] = file.content;
  }
  return contents;
}

}  // namespace cachewarm::bundle
