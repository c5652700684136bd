// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/bundle/format.h"

// Selects the frames of a bundle that must be transferred. Pure.
namespace cachewarm::bundle {

// One flag per entry of Config::entries: true if the tree already has the file. Empty: the tree has
// none of the files.
using PresentEntries = std::vector<bool>;

// Returns the frames to transfer: all that hold a part of a file that is not present. The result
// has indices across all layers. If no file of the newest layer is present, includes all frames of
// that layer, so that unlisted content in it is detected. Omits the frames of older layers that
// hold only files which the bundle no longer has.
std::vector<int64_t> NeededFrames(const Config& config, const PresentEntries& present);

// A file that is larger than its frame. It continues in the frames after Entry::frame, which hold
// nothing else.
struct LargeFile {
  const Entry* entry = nullptr;
  int64_t frames = 0;  // number of its frames
  // Offset of the content that each of its frames holds; empty if the frames before the next listed
  // file or the end of the layer are too few for the file.
  std::vector<int64_t> offsets;
};

// Returns the large files of a bundle, at most one for each frame in which a file begins. Their
// offsets follow from the sizes in the index, so a frame can be written before the frames before it
// have been read. They are unverified until the reader has compared them with the tar header in the
// first frame.
std::vector<LargeFile> LargeFilesOf(const Config& config);

// A range of contiguous frames in one layer.
struct FrameRun {
  size_t layer = 0;
  int64_t offset = 0;  // offset in the layer blob
  int64_t bytes = 0;
  friend bool operator==(const FrameRun&, const FrameRun&) = default;
};

// Combines frames into as few runs as possible. `frames` has ascending indices across all layers.
std::vector<FrameRun> RunsOf(const Config& config, const std::vector<int64_t>& frames);

// Returns the index of the first frame of the newest layer: the number of frames in all layers
// before it.
int64_t FirstFrameOfNewestLayer(const Config& config);

}  // namespace cachewarm::bundle
