// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace cachewarm::bundle {

// Reusable memory that holds one zstd frame, or its content, at a time. Unlike std::string it does
// not initialize its bytes and does not copy the old content when it grows. Not thread-safe.
class Buffer {
 public:
  // Returns `bytes` uninitialized bytes. Invalidates the spans that earlier calls returned.
  std::span<char> Make(size_t bytes) {
    if (bytes > capacity_) {
      storage_ = std::make_unique_for_overwrite<char[]>(bytes);
      capacity_ = bytes;
    }
    size_ = bytes;
    return {storage_.get(), bytes};
  }
  // Shortens the content to its first `bytes` bytes.
  void Cut(size_t bytes) { size_ = bytes; }

  size_t size() const { return size_; }
  std::string_view view() const { return {storage_.get(), size_}; }

 private:
  std::unique_ptr<char[]> storage_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace cachewarm::bundle
