// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/frames.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

// One that is being gathered and one that waits for the next worker to be free.
constexpr size_t kSpareFrames = 2;

}  // namespace

FrameStream::FrameStream(const Config& config, int threads, OnFrame on_frame)
    : on_frame_(std::move(on_frame)), crew_(threads) {
  for (const LayerIndex& layer : config.layers) {
    frames_.insert(frames_.end(), layer.frames.begin(), layer.frames.end());
  }
  workers_.resize(static_cast<size_t>(crew_.threads()));
  packed_.resize(workers_.size() + kSpareFrames);
}

absl::Status FrameStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (next_ == static_cast<int64_t>(frames_.size())) {
      return absl::DataLossError("the layers are longer than the frame index says");
    }
    if (gathered_bytes_ == 0) {
      const auto ring = static_cast<int64_t>(packed_.size());
      CW_RETURN_IF_ERROR(crew_.Wait(next_ - ring));
      room_ = packed_[static_cast<size_t>(next_ % ring)].Make(
          static_cast<size_t>(frames_[static_cast<size_t>(next_)].bytes));
    }
    const size_t taken = std::min(room_.size() - gathered_bytes_, bytes.size());
    std::copy_n(bytes.data(), taken, room_.data() + gathered_bytes_);
    bytes.remove_prefix(taken);
    gathered_bytes_ += taken;
    if (gathered_bytes_ == room_.size()) {
      Post();
    }
  }
  return absl::OkStatus();
}

void FrameStream::Post() {
  crew_.Post([this, index = next_, packed = std::string_view(room_.data(), room_.size())](
                 size_t worker) { return Handle(index, packed, worker); });
  ++next_;
  gathered_bytes_ = 0;
}

absl::Status FrameStream::Handle(int64_t index, std::string_view packed, size_t worker) {
  const Frame& frame = frames_[static_cast<size_t>(index)];
  if (DigestOf(packed) != frame.digest) {
    return absl::DataLossError(fmt::format(
        "frame {} of {} does not have the sha256 that the index says", index, frames_.size()));
  }
  auto& [reader, raw] = workers_[worker];
  const absl::Status whole = reader.Decompress(packed, static_cast<size_t>(frame.raw_bytes), raw);
  CW_RETURN_IF_ERROR(Annotate(whole, fmt::format("frame {} of {}", index, frames_.size())));
  return on_frame_({.index = index, .raw = raw.view(), .worker = worker, .crew = crew_});
}

absl::Status FrameStream::Finish() {
  CW_RETURN_IF_ERROR(crew_.Wait(next_ - 1));
  if (next_ != static_cast<int64_t>(frames_.size()) || gathered_bytes_ != 0) {
    return absl::DataLossError(
        fmt::format("the layers end in frame {} of {}", next_, frames_.size()));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
