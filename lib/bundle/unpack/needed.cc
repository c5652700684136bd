// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/needed.h"

#include <algorithm>
#include <span>

#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

// State of the listed files that begin in a frame: there are none, the tree has all of them, or at
// least one must be fetched.
enum class Content { kNothing, kPresent, kNeeded };

// Returns the size of the header that the packer writes for the file. The mode does not change
// the size. Returns 0 if the header cannot be written.
int64_t HeaderBytes(const Entry& entry) {
  const auto header = TarHeader({.path = entry.path,
                                 .type = MemberType::kFile,
                                 .bytes = entry.bytes,
                                 .mtime_ns = entry.mtime_ns});
  return header.ok() ? static_cast<int64_t>(header->size()) : 0;
}

// Returns the large file that begins in the first of `frames`, which are those up to the next
// listed file. Its header and its padded content fill its frames exactly. Another packer may write
// a header of another size. If this packer's header size matches no number of frames, the file gets
// the smallest number of frames that can hold a header and the content.
LargeFile PlaceInFrames(const Entry& entry, int64_t own_header, std::span<const int64_t> frames) {
  const int64_t padded_bytes = PaddedToBlock(entry.bytes);
  LargeFile file{.entry = &entry, .frames = static_cast<int64_t>(frames.size())};
  int64_t first_offset = 0;  // offset of the second frame's content
  int64_t raw_bytes = 0;
  size_t count = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    raw_bytes += frames[i];
    const int64_t header = raw_bytes - padded_bytes;
    if (header == own_header || (header >= kTarBlockBytes && count == 0)) {
      count = i + 1;
      first_offset = frames[0] - header;
    }
    if (header >= own_header) {
      break;
    }
  }
  if (count == 0 || first_offset < 0) {
    return file;
  }
  file.frames = static_cast<int64_t>(count);
  file.offsets.push_back(0);
  for (size_t i = 1; i < count; ++i) {
    file.offsets.push_back(first_offset);
    first_offset += frames[i];
  }
  return file;
}

}  // namespace

int64_t FirstFrameOfNewestLayer(const Config& config) {
  return config.layers.empty()
             ? 0
             : FrameCount(config) - static_cast<int64_t>(config.layers.back().frames.size());
}

std::vector<LargeFile> LargeFilesOf(const Config& config) {
  std::vector<int64_t> raw_bytes;
  std::vector<size_t> ends;  // for each frame, the number of frames up to the end of its layer
  for (const LayerIndex& layer : config.layers) {
    const size_t end = raw_bytes.size() + layer.frames.size();
    for (const Frame& frame : layer.frames) {
      raw_bytes.push_back(frame.raw_bytes);
      ends.push_back(end);
    }
  }
  std::vector<const Entry*> last(raw_bytes.size(), nullptr);  // by frame
  for (const Entry& entry : config.entries) {
    last[static_cast<size_t>(entry.frame)] = &entry;
  }
  std::vector<LargeFile> files;
  for (size_t frame = 0; frame < last.size(); ++frame) {
    size_t next = frame + 1;
    while (last[frame] != nullptr && next < ends[frame] && last[next] == nullptr) {
      ++next;
    }
    if (next == frame + 1) {
      continue;
    }
    const Entry& entry = *last[frame];
    const int64_t header = HeaderBytes(entry);
    if (header + PaddedToBlock(entry.bytes) > raw_bytes[frame]) {
      files.push_back(
          PlaceInFrames(entry, header, std::span(raw_bytes).subspan(frame, next - frame)));
    }
  }
  return files;
}

std::vector<int64_t> NeededFrames(const Config& config, const PresentEntries& present) {
  std::vector<Content> contents(static_cast<size_t>(FrameCount(config)), Content::kNothing);
  for (size_t i = 0; i < config.entries.size(); ++i) {
    Content& content = contents[static_cast<size_t>(config.entries[i].frame)];
    const bool is_present = !present.empty() && present[i];
    content = is_present ? std::max(content, Content::kPresent) : Content::kNeeded;
  }
  for (const LargeFile& file : LargeFilesOf(config)) {
    const auto first = static_cast<size_t>(file.entry->frame);
    std::fill_n(contents.begin() + static_cast<std::ptrdiff_t>(first), file.frames,
                contents[first]);
  }
  const auto newest = static_cast<size_t>(FirstFrameOfNewestLayer(config));
  const bool is_new =
      std::none_of(contents.begin() + static_cast<std::ptrdiff_t>(newest), contents.end(),
                   [](Content c) { return c == Content::kPresent; });
  std::vector<int64_t> needed;
  for (size_t i = 0; i < contents.size(); ++i) {
    if (contents[i] == Content::kNeeded || (is_new && i >= newest)) {
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
