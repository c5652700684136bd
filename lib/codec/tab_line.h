// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/digest.h"

namespace cachewarm::codec {

// Reads the tab-separated fields of one line in order and keeps the first error ("frame: is
// missing"). Used for long lists, where JSON syntax would take more space than the data. The line
// must outlive the reader. Not thread-safe.
class TabLine {
 public:
  explicit TabLine(std::string_view line) : rest_(line) {}

  // Reads a field of 1 to `bytes_max` bytes.
  std::string_view Text(std::string_view name, size_t bytes_max);
  // Reads a decimal number; a value outside of [min, max] is an error.
  int64_t Number(std::string_view name, int64_t min, int64_t max = INT64_MAX);
  // Reads a digest of 64 lower-case hex digits.
  Digest Sha256(std::string_view name);
  // Records an error about the field `name`.
  void Fail(std::string_view name, std::string_view problem);

  bool has_more() const { return has_more_; }
  // Returns OK, or INVALID_ARGUMENT with the first error.
  const absl::Status& status() const { return status_; }

 private:
  std::string_view rest_;
  bool has_more_ = true;
  absl::Status status_;
};

}  // namespace cachewarm::codec
