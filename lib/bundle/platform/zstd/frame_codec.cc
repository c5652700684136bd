// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/frame_codec.h"

#include <zstd.h>

#include "fmt/format.h"

namespace cachewarm::bundle {

struct FrameWriter::State {
  struct Free {
    void operator()(ZSTD_CCtx* owned) const { ZSTD_freeCCtx(owned); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  int level = 0;
};

FrameWriter::FrameWriter(int level) : state_(std::make_unique<State>()) {
  state_->level = level;
}
FrameWriter::FrameWriter(FrameWriter&&) noexcept = default;
FrameWriter& FrameWriter::operator=(FrameWriter&&) noexcept = default;
FrameWriter::~FrameWriter() = default;

absl::Status FrameWriter::Compress(std::string_view raw, Buffer& frame) {
  if (state_->context == nullptr) {
    return absl::ResourceExhaustedError("zstd: out of memory");
  }
  const std::span<char> output = frame.Make(FrameBytesMax(raw.size()));
  const size_t size = ZSTD_compressCCtx(state_->context.get(), output.data(), output.size(),
                                        raw.data(), raw.size(), state_->level);
  if (ZSTD_isError(size) != 0) {
    return absl::InternalError(fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  }
  frame.Cut(size);
  return absl::OkStatus();
}

struct FrameReader::State {
  struct Free {
    void operator()(ZSTD_DCtx* owned) const { ZSTD_freeDCtx(owned); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
};

FrameReader::FrameReader() : state_(std::make_unique<State>()) {}
FrameReader::FrameReader(FrameReader&&) noexcept = default;
FrameReader& FrameReader::operator=(FrameReader&&) noexcept = default;
FrameReader::~FrameReader() = default;

absl::Status FrameReader::Decompress(std::string_view frame, size_t raw_bytes, Buffer& raw) {
  if (state_->context == nullptr) {
    return absl::ResourceExhaustedError("zstd: out of memory");
  }
  // Reject bytes after the frame: ZSTD_decompress would also decompress a second frame.
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return absl::DataLossError("expected exactly one complete zstd frame");
  }
  const std::span<char> output = raw.Make(raw_bytes);
  const size_t size = ZSTD_decompressDCtx(state_->context.get(), output.data(), output.size(),
                                          frame.data(), frame.size());
  if (ZSTD_isError(size) != 0) {
    return absl::DataLossError(fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  }
  if (size != raw_bytes) {
    return absl::DataLossError(fmt::format(
        "the zstd frame decompresses to {} bytes instead of the expected {}", size, raw_bytes));
  }
  return absl::OkStatus();
}

size_t FrameBytesMax(size_t raw_bytes) {
  return ZSTD_compressBound(raw_bytes);
}

}  // namespace cachewarm::bundle
