// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

// The minimum work of packing and unpacking a tree, done by as many threads at once as there are
// cores. Times are wall seconds of a monotonic clock. Throws on errors, which ends the program. No
// state.
namespace cachewarm::bench {

struct File {
  std::string path;  // relative to the tree
  uint64_t bytes = 0;
};

struct Tree {
  std::vector<std::string> folders;  // parents first
  std::vector<File> files;           // sorted by path
};

struct Cost {
  double work = 0;
  double sync = 0;  // after the work: until what is promised to be durable is on disk
};

Tree List(const std::filesystem::path& root);

unsigned Cores();
double WallSeconds();
// Calls `each` with 0 to count - 1, on Cores() threads that take the numbers in order.
void OnAllCores(size_t count, const std::function<void(size_t)>& each);

// Reads every file, compresses it with zstd of `level` in chunks of at most 4 MiB, hashes what
// comes out, and writes it to the new file `target`, which is synced at the end.
Cost PackTree(const std::filesystem::path& root, const Tree& tree, int level,
              const std::filesystem::path& target);

// Hashes and decompresses every frame of `blob`, and creates folders and files of the sizes of
// `tree` below the empty directory `target` from what comes out. The file system is synced at the
// end. Reads `blob` into memory before.
Cost UnpackTree(const std::filesystem::path& blob, const Tree& tree,
                const std::filesystem::path& target);

// A file descriptor. Throws if the file cannot be opened.
class Opened {
 public:
  Opened(const std::filesystem::path& path, int flags);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Throws the error in errno for `path`.
[[noreturn]] void ThrowErrno(const std::filesystem::path& path);

}  // namespace cachewarm::bench
