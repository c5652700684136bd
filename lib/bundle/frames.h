// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/bundle/format.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

// Cuts the bytes of a bundle's layers into frames, verifies each one's sha256, decompresses it and
// hands it on, in order. Not thread-safe.
class FrameStream : public Sink {
 public:
  // `index` counts through all layers. `raw` is valid during the call.
  using OnFrame = std::function<absl::Status(int64_t index, std::string_view raw)>;

  FrameStream(const Config& config, OnFrame on_frame);

  // DATA_LOSS at the first frame that is not what its digest says, and for bytes after the last.
  absl::Status Write(std::string_view bytes) override;
  // DATA_LOSS when frames are missing.
  absl::Status Finish() const;

 private:
  absl::Status Whole(std::string_view packed);

  std::vector<Frame> frames_;
  OnFrame on_frame_;
  FrameReader reader_;
  size_t next_ = 0;
  std::string packed_;  // the beginning of frame `next_`
  std::string raw_;
};

}  // namespace cachewarm::bundle
