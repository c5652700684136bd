// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// Reads a sequence of bytes once. One thread at a time; may block.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Reads up to the size of `buffer` and returns the number of bytes; 0 at the end.
  virtual absl::StatusOr<size_t> Read(std::span<char> buffer) = 0;
};

// Accepts a sequence of bytes. One thread at a time; may block to slow the producer down. An error
// of Write() ends the transfer and becomes its result.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  virtual absl::Status Write(std::string_view bytes) = 0;
};

// Reads a text, which must outlive the source.
class TextSource : public Source {
 public:
  explicit TextSource(std::string_view text) : rest_(text) {}
  absl::StatusOr<size_t> Read(std::span<char> buffer) override;

 private:
  std::string_view rest_;
};

// Collects at most `bytes_max` bytes; RESOURCE_EXHAUSTED if there are more.
class TextSink : public Sink {
 public:
  explicit TextSink(size_t bytes_max) : bytes_max_(bytes_max) {}
  absl::Status Write(std::string_view bytes) override;
  std::string& text() { return text_; }

 private:
  size_t bytes_max_;
  std::string text_;
};

// Copies all of `source` to `sink` and returns the number of bytes.
absl::StatusOr<int64_t> Copy(Source& source, Sink& sink);

}  // namespace cachewarm::bundle
