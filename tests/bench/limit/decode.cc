// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>
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

// Files are created from at least this many bytes.
constexpr size_t kContentMin = 1 << 20;
constexpr uint64_t kRawMax = 64 << 20;

size_t Checked(size_t code) {
  if (ZSTD_isError(code) != 0) {
    throw std::runtime_error(ZSTD_getErrorName(code));
  }
  return code;
}

std::vector<std::span<const char>> FramesOf(std::span<const char> blob) {
  std::vector<std::span<const char>> frames;
  while (!blob.empty()) {
    const size_t size = Checked(ZSTD_findFrameCompressedSize(blob.data(), blob.size()));
    if (ZSTD_getFrameContentSize(blob.data(), blob.size()) > kRawMax) {
      throw std::runtime_error("a frame is larger than 64 MiB, or its size is not in its header");
    }
    frames.push_back(blob.first(size));
    blob = blob.subspan(size);
  }
  return frames;
}

// Verifies and decompresses frames, on one thread.
class Decoder {
 public:
  // Returns the content, which is valid until the next call.
  std::span<const char> Decode(std::span<const char> frame) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    ::SHA256(reinterpret_cast<const unsigned char*>(frame.data()), frame.size(), digest.data());
    const auto raw = static_cast<size_t>(ZSTD_getFrameContentSize(frame.data(), frame.size()));
    out_.resize(std::max({out_.size(), raw, kContentMin}));
    Checked(
        ZSTD_decompressDCtx(context_.get(), out_.data(), out_.size(), frame.data(), frame.size()));
    return out_;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  std::vector<char> out_;
};

void CreateFile(const std::filesystem::path& path, uint64_t bytes, std::span<const char> content) {
  const Opened file(path, O_WRONLY | O_CREAT | O_EXCL);
  while (bytes > 0) {
    const ssize_t count =
        ::write(file.fd(), content.data(), std::min<uint64_t>(bytes, content.size()));
    if (count <= 0) {
      ThrowErrno(path);
    }
    bytes -= static_cast<uint64_t>(count);
  }
}

// Creates the folders, those of one depth at once.
void CreateFolders(const std::filesystem::path& target, const Tree& tree) {
  std::vector<std::vector<const std::string*>> levels;
  for (const std::string& folder : tree.folders) {
    const auto depth = static_cast<size_t>(std::count(folder.begin(), folder.end(), '/'));
    levels.resize(std::max(levels.size(), depth + 1));
    levels[depth].push_back(&folder);
  }
  for (const auto& level : levels) {
    OnAllCores(level.size(),
               [&](size_t i) { std::filesystem::create_directory(target / *level[i]); });
  }
}

// Returns, for each frame, the index after the last file that is created with it. Every frame gets
// about the same number of bytes.
std::vector<size_t> DivideFiles(const Tree& tree, size_t frames) {
  uint64_t total = 0;
  for (const File& file : tree.files) {
    total += file.bytes;
  }
  std::vector<size_t> ends;
  uint64_t bytes = 0;
  size_t file = 0;
  for (size_t frame = 1; frame <= frames; ++frame) {
    while (file < tree.files.size() && (frame == frames || bytes < total / frames * frame)) {
      bytes += tree.files[file++].bytes;
    }
    ends.push_back(file);
  }
  return ends;
}

}  // namespace

Cost UnpackTree(const std::filesystem::path& blob, const Tree& tree,
                const std::filesystem::path& target) {
  std::ifstream in(blob, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.empty()) {
    throw std::runtime_error(blob.string() + ": empty or unreadable");
  }
  const std::vector<std::span<const char>> frames = FramesOf(bytes);
  const std::vector<size_t> ends = DivideFiles(tree, frames.size());
  const Opened folder(target, O_RDONLY | O_DIRECTORY);
  const double begin = WallSeconds();
  CreateFolders(target, tree);
  OnAllCores(frames.size(), [&](size_t frame) {
    thread_local Decoder decoder;
    const std::span<const char> content = decoder.Decode(frames[frame]);
    for (size_t file = frame == 0 ? 0 : ends[frame - 1]; file < ends[frame]; ++file) {
      CreateFile(target / tree.files[file].path, tree.files[file].bytes, content);
    }
  });
  const double work = WallSeconds() - begin;
  if (::syncfs(folder.fd()) != 0) {
    ThrowErrno(target);
  }
  return {.work = work, .sync = WallSeconds() - begin - work};
}

}  // namespace cachewarm::bench
