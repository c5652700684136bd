// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/buffer.h"

// One zstd frame (RFC 8878) at a time; the only place that knows the library is platform/zstd.
namespace cachewarm::bundle {

// Makes frames that carry their raw size. The same input and level give the same bytes with one
// version of the library. Not thread-safe; one per worker.
class FrameWriter {
 public:
  explicit FrameWriter(int level);
  FrameWriter(FrameWriter&&) noexcept;
  FrameWriter& operator=(FrameWriter&&) noexcept;
  ~FrameWriter();

  // `frame` is overwritten.
  absl::Status Compress(std::string_view raw, Buffer& frame);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Not thread-safe; one per worker.
class FrameReader {
 public:
  FrameReader();
  FrameReader(FrameReader&&) noexcept;
  FrameReader& operator=(FrameReader&&) noexcept;
  ~FrameReader();

  // `raw` becomes exactly `raw_bytes` long. DATA_LOSS when `frame` is not one whole frame that
  // decompresses to that many bytes; nothing larger is ever allocated.
  absl::Status Decompress(std::string_view frame, size_t raw_bytes, Buffer& raw);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The most that a frame of so many raw bytes takes.
size_t FrameBytesMax(size_t raw_bytes);

}  // namespace cachewarm::bundle
