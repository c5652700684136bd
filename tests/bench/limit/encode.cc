// SPDX-License-Identifier: Apache-2.0
#include <openssl/sha.h>
#include <zstd.h>

#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>

#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

constexpr size_t kChunk = 4 << 20;

// Compresses and hashes its input; counts only that time.
class Encoder {
 public:
  explicit Encoder(int level) : context_(ZSTD_createCCtx(), &ZSTD_freeCCtx) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  }

  void Add(std::span<const char> chunk) {
    const double begin = ThreadSeconds();
    const size_t bytes =
        ZSTD_compress2(context_.get(), out_.data(), out_.size(), chunk.data(), chunk.size());
    if (ZSTD_isError(bytes) != 0) {
      throw std::runtime_error(ZSTD_getErrorName(bytes));
    }
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    ::SHA256(out_.data(), bytes, digest.data());
    seconds_ += ThreadSeconds() - begin;
  }

  double seconds() const { return seconds_; }

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
  std::vector<unsigned char> out_ = std::vector<unsigned char>(ZSTD_compressBound(kChunk));
  double seconds_ = 0;
};

}  // namespace

double CompressTree(const std::filesystem::path& root, const Tree& tree, int level) {
  Encoder encoder(level);
  std::vector<char> chunk(kChunk);
  size_t filled = 0;
  for (const File& file : tree.files) {
    std::ifstream in(root / file.path, std::ios::binary);
    while (in) {
      in.read(chunk.data() + filled, static_cast<std::streamsize>(kChunk - filled));
      filled += static_cast<size_t>(in.gcount());
      if (filled == kChunk) {
        encoder.Add(chunk);
        filled = 0;
      }
    }
  }
  encoder.Add({chunk.data(), filled});
  return encoder.seconds();
}

}  // namespace cachewarm::bench
