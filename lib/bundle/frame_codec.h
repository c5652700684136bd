// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/buffer.h"

// Compresses and decompresses single zstd frames (RFC 8878). Only platform/zstd includes zstd's
// headers.
namespace cachewarm::bundle {

// Compresses data to frames whose header contains the uncompressed size. Deterministic for one
// version of zstd and one level. Not thread-safe.
class FrameWriter {
 public:
  explicit FrameWriter(int level);
  FrameWriter(FrameWriter&&) noexcept;
  FrameWriter& operator=(FrameWriter&&) noexcept;
  ~FrameWriter();

  // Compresses `raw` to one frame, which replaces the content of `frame`.
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

  // Decompresses `frame` to `raw` and replaces the content of `raw`. Never allocates more than
  // `raw_bytes` bytes. DATA_LOSS unless `frame` is one complete frame with exactly `raw_bytes`
  // bytes of content.
  absl::Status Decompress(std::string_view frame, size_t raw_bytes, Buffer& raw);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the maximum compressed size of a frame with `raw_bytes` bytes of content.
size_t FrameBytesMax(size_t raw_bytes);

}  // namespace cachewarm::bundle
