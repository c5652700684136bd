// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/buffer.h"

// Compresses and decompresses single zstd frames (RFC 8878). Only platform/zstd uses the library.
namespace cachewarm::bundle {

// Compresses to frames that state their raw size. Deterministic for one version of the library and
// one level. Not thread-safe.
class FrameWriter {
 public:
  explicit FrameWriter(int level);
  FrameWriter(FrameWriter&&) noexcept;
  FrameWriter& operator=(FrameWriter&&) noexcept;
  ~FrameWriter();

  // Writes one frame with the content `raw` to `frame`, replacing the bytes that it held.
  absl::Status Compress(std::string_view raw, Buffer& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decompresses frames. Not thread-safe.
class FrameReader {
 public:
  FrameReader();
  FrameReader(FrameReader&&) noexcept;
  FrameReader& operator=(FrameReader&&) noexcept;
  ~FrameReader();

  // Replaces the content of `raw` by exactly `raw_bytes` bytes and never allocates more. DATA_LOSS
  // unless `frame` is one whole frame of that raw size.
  absl::Status Decompress(std::string_view frame, size_t raw_bytes, Buffer& raw);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the maximum compressed size of a frame with `raw_bytes` bytes of content.
size_t FrameBytesMax(size_t raw_bytes);

}  // namespace cachewarm::bundle
