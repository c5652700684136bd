// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/fd.h"

#include <unistd.h>

namespace cachewarm::fs {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) {
      ::close(number_);
    }
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

Fd::~Fd() {
  if (number_ >= 0) {
    ::close(number_);
  }
}

}  // namespace cachewarm::fs
