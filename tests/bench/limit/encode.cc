// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>

#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

constexpr size_t kChunk = 4 << 20;

// A part of the tree that fits into one chunk: whole files, or a part of one large file.
struct Part {
  size_t first = 0;  // index of the first file
  size_t files = 0;
  uint64_t from = 0;  // offset in the first file
};

std::vector<Part> Divide(const Tree& tree) {
  std::vector<Part> parts;
  uint64_t filled = kChunk;
  for (size_t i = 0; i < tree.files.size(); ++i) {
    const uint64_t bytes = tree.files[i].bytes;
    if (!parts.empty() && filled + bytes <= kChunk) {
      ++parts.back().files;
      filled += bytes;
      continue;
    }
    for (uint64_t from = 0; from == 0 || from < bytes; from += kChunk) {
      parts.push_back({.first = i, .files = 1, .from = from});
    }
    filled = bytes <= kChunk ? bytes : kChunk;
  }
  return parts;
}

// Reads the bytes from offset `from` until `chunk` is full or the file ends. Returns their number.
size_t ReadFile(const std::filesystem::path& path, uint64_t from, std::span<char> chunk) {
  const Opened file(path, O_RDONLY);
  size_t filled = 0;
  while (filled < chunk.size()) {
    const ssize_t count = ::pread(file.fd(), chunk.data() + filled, chunk.size() - filled,
                                  static_cast<off_t>(from + filled));
    if (count < 0) {
      ThrowErrno(path);
    }
    if (count == 0) {
      break;
    }
    filled += static_cast<size_t>(count);
  }
  return filled;
}

// Compresses and hashes chunks, on one thread.
class Encoder {
 public:
  // Returns the compressed bytes, which are valid until the next call.
  std::span<const char> Encode(std::span<const char> chunk, int level) {
    const size_t bytes = ZSTD_compressCCtx(context_.get(), out_.data(), out_.size(), chunk.data(),
                                           chunk.size(), level);
    if (ZSTD_isError(bytes) != 0) {
      throw std::runtime_error(ZSTD_getErrorName(bytes));
    }
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    ::SHA256(reinterpret_cast<const unsigned char*>(out_.data()), bytes, digest.data());
    return std::span(out_).first(bytes);
  }

  std::vector<char>& chunk() { return chunk_; }

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_{ZSTD_createCCtx(), &ZSTD_freeCCtx};
  std::vector<char> chunk_ = std::vector<char>(kChunk);
  std::vector<char> out_ = std::vector<char>(ZSTD_compressBound(kChunk));
};

void Append(const Opened& file, std::span<const char> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.fd(), bytes.data(), bytes.size());
    if (count <= 0) {
      ThrowErrno(path);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

}  // namespace

Cost PackTree(const std::filesystem::path& root, const Tree& tree, int level,
              const std::filesystem::path& target) {
  const std::vector<Part> parts = Divide(tree);
  const double begin = WallSeconds();
  const Opened layer(target, O_WRONLY | O_CREAT | O_EXCL);
  std::mutex mutex;
  OnAllCores(parts.size(), [&](size_t number) {
    thread_local Encoder encoder;
    const Part& part = parts[number];
    size_t filled = 0;
    for (size_t i = part.first; i < part.first + part.files; ++i) {
      filled += ReadFile(root / tree.files[i].path, i == part.first ? part.from : 0,
                         std::span(encoder.chunk()).subspan(filled));
    }
    const std::span<const char> packed =
        encoder.Encode(std::span(encoder.chunk()).first(filled), level);
    const std::lock_guard lock(mutex);
    Append(layer, packed, target);
  });
  const double work = WallSeconds() - begin;
  if (::fsync(layer.fd()) != 0) {
    ThrowErrno(target);
  }
  return {.work = work, .sync = WallSeconds() - begin - work};
}

}  // namespace cachewarm::bench
