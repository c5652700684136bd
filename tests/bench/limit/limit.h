// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// The minimum work of packing and unpacking a tree, in CPU seconds: each part runs alone, in one
// thread unless stated otherwise. Throws on errors, which ends the program. No state.
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
// Seconds of a monotonic clock.
double WallSeconds();

// Wall seconds to read every file by `threads` threads; the bytes are discarded.
double ReadTree(const std::filesystem::path& root, const Tree& tree, unsigned threads);

// Creates folders and files of these sizes below the empty directory `target`, from one buffer.
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
