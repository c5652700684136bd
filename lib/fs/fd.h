// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace cachewarm::fs {

// Owns a file descriptor and closes it. -1 means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  bool ok() const { return number_ >= 0; }
  int get() const { return number_; }
  // Returns the descriptor and passes its ownership to the caller.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace cachewarm::fs
