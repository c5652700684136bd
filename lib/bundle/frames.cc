// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/frames.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {

FrameStream::FrameStream(const Config& config, OnFrame on_frame) : on_frame_(std::move(on_frame)) {
  for (const LayerIndex& layer : config.layers) {
    frames_.insert(frames_.end(), layer.frames.begin(), layer.frames.end());
  }
}

absl::Status FrameStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (next_ == frames_.size()) {
      return absl::DataLossError("the layers are longer than the frame index says");
    }
    const auto wanted = static_cast<size_t>(frames_[next_].bytes) - packed_.size();
    if (packed_.empty() && bytes.size() >= wanted) {
      CW_RETURN_IF_ERROR(Whole(bytes.substr(0, wanted)));
      bytes.remove_prefix(wanted);
      continue;
    }
    const size_t taken = std::min(wanted, bytes.size());
    packed_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (taken == wanted) {
      CW_RETURN_IF_ERROR(Whole(packed_));
      packed_.clear();
    }
  }
  return absl::OkStatus();
}

absl::Status FrameStream::Whole(std::string_view packed) {
  const Frame& frame = frames_[next_];
  if (DigestOf(packed) != frame.digest) {
    return absl::DataLossError(fmt::format(
        "frame {} of {} does not have the sha256 that the index says", next_, frames_.size()));
  }
  const absl::Status raw = reader_.Decompress(packed, static_cast<size_t>(frame.raw_bytes), raw_);
  CW_RETURN_IF_ERROR(Annotate(raw, fmt::format("frame {} of {}", next_, frames_.size())));
  return on_frame_(static_cast<int64_t>(next_++), raw_);
}

absl::Status FrameStream::Finish() const {
  if (next_ != frames_.size() || !packed_.empty()) {
    return absl::DataLossError(
        fmt::format("the layers end in frame {} of {}", next_, frames_.size()));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
