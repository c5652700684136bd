// SPDX-License-Identifier: Apache-2.0
#include <openssl/sha.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>

#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

// A larger frame is decoded through a window of this size instead of at once.
constexpr size_t kWholeFrameMax = 64 << 20;
constexpr int kWindowLogMax = 31;

size_t Checked(size_t code) {
  if (ZSTD_isError(code) != 0) {
    throw std::runtime_error(ZSTD_getErrorName(code));
  }
  return code;
}

class Decoder {
 public:
  Decoder() : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    Checked(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLogMax));
  }

  void Decode(std::span<const char> frame) {
    const unsigned long long raw = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (raw > kWholeFrameMax) {  // unknown and error are the largest numbers
      Stream(frame);
      return;
    }
    if (out_.size() < raw) {
      out_.resize(raw);
    }
    Checked(
        ZSTD_decompressDCtx(context_.get(), out_.data(), out_.size(), frame.data(), frame.size()));
  }

 private:
  void Stream(std::span<const char> frame) {
    out_.resize(std::max(out_.size(), ZSTD_DStreamOutSize()));
    ZSTD_inBuffer in{frame.data(), frame.size(), 0};
    while (in.pos < in.size) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      Checked(ZSTD_decompressStream(context_.get(), &out, &in));
    }
  }

  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<char> out_;
};

}  // namespace

DecodeCost DecodeBlob(const std::filesystem::path& blob) {
  std::ifstream in(blob, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.empty()) {
    throw std::runtime_error(blob.string() + ": empty or unreadable");
  }
  DecodeCost cost;
  double begin = ThreadSeconds();
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  std::span<const char> rest(bytes);
  ::SHA256(reinterpret_cast<const unsigned char*>(rest.data()), rest.size(), digest.data());
  cost.sha256 = ThreadSeconds() - begin;
  begin = ThreadSeconds();
  Decoder decoder;
  while (!rest.empty()) {
    const size_t size = Checked(ZSTD_findFrameCompressedSize(rest.data(), rest.size()));
    decoder.Decode(rest.first(size));
    rest = rest.subspan(size);
  }
  cost.zstd = ThreadSeconds() - begin;
  return cost;
}

}  // namespace cachewarm::bench
