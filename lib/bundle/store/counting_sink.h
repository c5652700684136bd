// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

// Forwards bytes to another sink. Counts the bytes that the other sink accepted, and keeps the
// result of the last Write() to it. A store decorator uses it to resume a read at the right byte
// and to separate errors of the sink from errors of the store. One thread at a time.
class CountingSink : public Sink {
 public:
  // `sink` must outlive this object.
  explicit CountingSink(Sink& sink) : sink_(sink) {}
  absl::Status Write(std::string_view bytes) override {
    wrote_ = true;
    status_ = sink_.Write(bytes);
    if (status_.ok()) {
      bytes_ += static_cast<int64_t>(bytes.size());
    }
    return status_;
  }
  bool wrote() const { return wrote_; }
  int64_t bytes() const { return bytes_; }  // number of bytes that the sink accepted
  const absl::Status& status() const { return status_; }

 private:
  Sink& sink_;
  bool wrote_ = false;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace cachewarm::bundle
