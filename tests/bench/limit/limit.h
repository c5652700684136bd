// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// The least work that packing and unpacking a tree take, each part alone and in one thread unless
// said otherwise, in seconds of CPU: what a program with nothing around it would need. Errors end
// the program by an exception. No state.
namespace cachewarm::bench {

struct File {
  std::string path;  // relative to the tree
  uint64_t bytes = 0;
};

struct Tree {
  std::vector<std::string> folders;  // parents first
  std::vector<File> files;
};

Tree List(const std::filesystem::path& root);

// CPU seconds of the calling thread.
double ThreadSeconds();
// Seconds of a clock that only goes forward.
double WallSeconds();

// Wall seconds to read every file by `threads` threads; nothing is done with the bytes.
double ReadTree(const std::filesystem::path& root, const Tree& tree, unsigned threads);

// Makes folders and files of those sizes below the empty directory `target`, from one buffer.
double CreateTree(const std::filesystem::path& target, const Tree& tree);
// Wall seconds until all of that file system is on disk.
double SyncTree(const std::filesystem::path& target);

// zstd of `level`, in chunks of 4 MiB of the files' bytes, and sha256 of what comes out.
double CompressTree(const std::filesystem::path& root, const Tree& tree, int level);

struct DecodeCost {
  double sha256 = 0;  // of the whole file
  double zstd = 0;    // of its frames, one call each
};
DecodeCost DecodeBlob(const std::filesystem::path& blob);

}  // namespace cachewarm::bench
