// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/bundle/format.h"

// Which frames of a bundle must be moved. Pure.
namespace cachewarm::bundle {

// By index in Config::entries: files that the tree holds already. Empty: none.
using PresentEntries = std::vector<bool>;

// The frames, counted through all layers, that hold something of a file that is not present; of
// the newest layer all frames when nothing of it is present, so that whatever is odd in it is met.
// Older layers also hold files that the bundle has no more: frames of nothing else are left out.
std::vector<int64_t> NeededFrames(const Config& config, const PresentEntries& present);

// Where frames lie that follow one another in one layer.
struct FrameRun {
  size_t layer = 0;
  int64_t offset = 0;  // in the layer blob
  int64_t bytes = 0;
  friend bool operator==(const FrameRun&, const FrameRun&) = default;
};

// `frames` in ascending order, as few runs as there are gaps.
std::vector<FrameRun> RunsOf(const Config& config, const std::vector<int64_t>& frames);

// The number of frames in all layers before the newest.
int64_t FirstFrameOfNewestLayer(const Config& config);

}  // namespace cachewarm::bundle
