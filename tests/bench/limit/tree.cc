// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <thread>

#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {
namespace {

constexpr size_t kBuffer = 1 << 20;

// Opens `path`. Throws on errors.
class Opened {
 public:
  Opened(const std::filesystem::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) {
      throw std::system_error(errno, std::generic_category(), path.string());
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { ::close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

void ReadFile(const std::filesystem::path& path, std::vector<char>& buffer) {
  const Opened file(path, O_RDONLY);
  ssize_t count = 0;
  do {
    count = ::read(file.fd(), buffer.data(), buffer.size());
    if (count < 0) {
      throw std::system_error(errno, std::generic_category(), path.string());
    }
  } while (count > 0);
}

void WriteFile(const std::filesystem::path& path, uint64_t bytes, const std::vector<char>& buffer) {
  const Opened file(path, O_WRONLY | O_CREAT | O_EXCL);
  while (bytes > 0) {
    const ssize_t count = ::write(file.fd(), buffer.data(), std::min(bytes, buffer.size()));
    if (count <= 0) {
      throw std::system_error(errno, std::generic_category(), path.string());
    }
    bytes -= static_cast<uint64_t>(count);
  }
}

}  // namespace

Tree List(const std::filesystem::path& root) {
  Tree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    if (entry.is_directory()) {
      tree.folders.push_back(path);
    } else if (entry.is_regular_file()) {
      tree.files.push_back({.path = path, .bytes = entry.file_size()});
    }
  }
  std::sort(tree.folders.begin(), tree.folders.end());
  std::sort(tree.files.begin(), tree.files.end(),
            [](const File& one, const File& other) { return one.path < other.path; });
  return tree;
}

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ReadTree(const std::filesystem::path& root, const Tree& tree, unsigned threads) {
  const double begin = WallSeconds();
  std::atomic<size_t> next = 0;
  {
    std::vector<std::jthread> readers;
    for (unsigned i = 0; i < threads; ++i) {
      readers.emplace_back([&] {
        std::vector<char> buffer(kBuffer);
        for (size_t at = next++; at < tree.files.size(); at = next++) {
          ReadFile(root / tree.files[at].path, buffer);
        }
      });
    }
  }
  return WallSeconds() - begin;
}

double CreateTree(const std::filesystem::path& target, const Tree& tree) {
  const std::vector<char> buffer(kBuffer, 'x');
  const double begin = ThreadSeconds();
  for (const std::string& folder : tree.folders) {
    std::filesystem::create_directory(target / folder);
  }
  for (const File& file : tree.files) {
    WriteFile(target / file.path, file.bytes, buffer);
  }
  return ThreadSeconds() - begin;
}

double SyncTree(const std::filesystem::path& target) {
  const Opened folder(target, O_RDONLY | O_DIRECTORY);
  const double begin = WallSeconds();
  if (::syncfs(folder.fd()) != 0) {
    throw std::system_error(errno, std::generic_category(), target.string());
  }
  return WallSeconds() - begin;
}

}  // namespace cachewarm::bench
