// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "tests/bench/limit/limit.h"

namespace cachewarm::bench {

Opened::Opened(const std::filesystem::path& path, int flags)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
  if (fd_ < 0) {
    ThrowErrno(path);
  }
}

Opened::~Opened() {
  ::close(fd_);
}

void ThrowErrno(const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string());
}

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

unsigned Cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void OnAllCores(size_t count, const std::function<void(size_t)>& each) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < Cores(); ++i) {
      threads.emplace_back([&] {
        try {
          for (size_t at = next++; at < count; at = next++) {
            each(at);
          }
        } catch (...) {
          const std::lock_guard lock(mutex);
          error = std::current_exception();
        }
      });
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace cachewarm::bench
