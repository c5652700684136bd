// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/frames.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

// Number of compressed frames that are held in addition to one per worker thread: one that is being
// received and one that waits for a free thread.
constexpr size_t kSpareFrames = 2;

}  // namespace

FrameStream::FrameStream(const Config& config, const std::vector<int64_t>& needed, int threads,
                         OnFrame on_frame)
    : on_frame_(std::move(on_frame)), pool_(threads) {
  int64_t index = 0;
  for (const LayerIndex& layer : config.layers) {
    for (const Frame& frame : layer.frames) {
      if (frames_.size() < needed.size() && needed[frames_.size()] == index) {
        frames_.push_back({.index = index, .frame = frame});
      }
      ++index;
    }
  }
  workers_.resize(static_cast<size_t>(pool_.threads()));
  packed_.resize(workers_.size() + kSpareFrames);
}

absl::Status FrameStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (next_ == static_cast<int64_t>(frames_.size())) {
      return absl::DataLossError("the layers are longer than the frame index says");
    }
    if (gathered_bytes_ == 0) {
      const auto ring = static_cast<int64_t>(packed_.size());
      CW_RETURN_IF_ERROR(pool_.Wait(next_ - ring));
      frame_buffer_ = packed_[static_cast<size_t>(next_ % ring)].Make(
          static_cast<size_t>(frames_[static_cast<size_t>(next_)].frame.bytes));
    }
    const size_t taken = std::min(frame_buffer_.size() - gathered_bytes_, bytes.size());
    std::copy_n(bytes.data(), taken, frame_buffer_.data() + gathered_bytes_);
    bytes.remove_prefix(taken);
    gathered_bytes_ += taken;
    if (gathered_bytes_ == frame_buffer_.size()) {
      Post();
    }
  }
  return absl::OkStatus();
}

void FrameStream::Post() {
  pool_.Post([this, position = next_,
              packed = std::string_view(frame_buffer_.data(), frame_buffer_.size())](
                 size_t worker) { return Handle(position, packed, worker); });
  ++next_;
  gathered_bytes_ = 0;
}

absl::Status FrameStream::Handle(int64_t position, std::string_view packed, size_t worker) {
  const auto& [index, frame] = frames_[static_cast<size_t>(position)];
  if (DigestOf(packed) != frame.digest) {
    return absl::DataLossError(
        fmt::format("frame {} does not match its sha256 in the frame index", index));
  }
  auto& [reader, raw] = workers_[worker];
  const absl::Status whole = reader.Decompress(packed, static_cast<size_t>(frame.raw_bytes), raw);
  CW_RETURN_IF_ERROR(Annotate(whole, fmt::format("frame {}", index)));
  return on_frame_(
      {.index = index, .position = position, .raw = raw.view(), .worker = worker, .pool = pool_});
}

absl::Status FrameStream::Finish() {
  CW_RETURN_IF_ERROR(pool_.Wait(next_ - 1));
  if (next_ != static_cast<int64_t>(frames_.size()) || gathered_bytes_ != 0) {
    return absl::DataLossError(fmt::format(
        "the layers end early: {} of {} needed frames are complete", next_, frames_.size()));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
