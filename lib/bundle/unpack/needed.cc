// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/needed.h"

#include <algorithm>

#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

// State of the listed files that begin in a frame: there are none, the tree has all of them, or at
// least one must be fetched.
enum class Content { kNothing, kPresent, kNeeded };

struct FrameUse {
  Content content = Content::kNothing;
  int64_t raw_bytes = 0;
  bool begins_layer = false;
  bool continues = false;  // the rest of its last file may be in the next frame
};

std::vector<FrameUse> FramesOf(const Config& config) {
  std::vector<FrameUse> uses;
  for (const LayerIndex& layer : config.layers) {
    for (const Frame& frame : layer.frames) {
      uses.push_back({.raw_bytes = frame.raw_bytes, .begins_layer = &frame == &layer.frames[0]});
    }
  }
  return uses;
}

void MarkEntries(const Config& config, const PresentEntries& present, std::vector<FrameUse>& uses) {
  for (size_t i = 0; i < config.entries.size(); ++i) {
    FrameUse& use = uses[static_cast<size_t>(config.entries[i].frame)];
    const bool is_present = !present.empty() && present[i];
    use.content = is_present ? std::max(use.content, Content::kPresent) : Content::kNeeded;
    use.continues = config.entries[i].bytes > use.raw_bytes - kTarBlockBytes;
  }
}

// The last file of a frame may continue in the frames after it, up to the next frame in which a
// listed file begins. Gives all frames between these two the Content of the frame in which the file
// begins. Perhaps the file ends before the last of them: its end depends on the size of its tar
// header, which is known only after the frames were read. If the file ends earlier, some
// frames are transferred although they hold no part of it.
void ExtendToContinuations(std::vector<FrameUse>& uses) {
  for (size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].content == Content::kNothing && uses[i - 1].continues && !uses[i].begins_layer) {
      uses[i].content = uses[i - 1].content;
      uses[i].continues = true;
    }
  }
}

}  // namespace

int64_t FirstFrameOfNewestLayer(const Config& config) {
  return config.layers.empty()
             ? 0
             : FrameCount(config) - static_cast<int64_t>(config.layers.back().frames.size());
}

std::vector<int64_t> NeededFrames(const Config& config, const PresentEntries& present) {
  std::vector<FrameUse> uses = FramesOf(config);
  MarkEntries(config, present, uses);
  ExtendToContinuations(uses);
  const auto newest = static_cast<size_t>(FirstFrameOfNewestLayer(config));
  const bool is_new =
      std::none_of(uses.begin() + static_cast<std::ptrdiff_t>(newest), uses.end(),
                   [](const auto& use) { return use.content == Content::kPresent; });
  std::vector<int64_t> needed;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].content == Content::kNeeded || (is_new && i >= newest)) {
      needed.push_back(static_cast<int64_t>(i));
    }
  }
  return needed;
}

std::vector<FrameRun> RunsOf(const Config& config, const std::vector<int64_t>& frames) {
  std::vector<FrameRun> runs;
  int64_t first = 0;
  auto next = frames.begin();
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    const auto& index = config.layers[layer].frames;
    const auto count = static_cast<int64_t>(index.size());
    for (; next != frames.end() && *next < first + count; ++next) {
      const Frame& frame = index[static_cast<size_t>(*next - first)];
      const bool follows = !runs.empty() && runs.back().layer == layer &&
                           runs.back().offset + runs.back().bytes == frame.offset;
      if (!follows) {
        runs.push_back({.layer = layer, .offset = frame.offset});
      }
      runs.back().bytes += frame.bytes;
    }
    first += count;
  }
  return runs;
}

}  // namespace cachewarm::bundle
