// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace cachewarm::bundle {

// Room for one frame after the other. Unlike a string it neither clears what is overwritten anyway
// nor moves what is given up. Not thread-safe.
class Buffer {
 public:
  // The first `bytes` of it, of any content; what an earlier call gave is gone.
  std::span<char> Make(size_t bytes) {
    if (bytes > capacity_) {
      storage_ = std::make_unique_for_overwrite<char[]>(bytes);
      capacity_ = bytes;
    }
    size_ = bytes;
    return {storage_.get(), bytes};
  }
  // Keeps the first `bytes` of what Make() gave.
  void Cut(size_t bytes) { size_ = bytes; }

  size_t size() const { return size_; }
  std::string_view view() const { return {storage_.get(), size_}; }

 private:
  std::unique_ptr<char[]> storage_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace cachewarm::bundle
