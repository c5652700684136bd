// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/digest.h"

namespace cachewarm::codec {

// Takes the fields of one line apart, which lie in order with a tab between them, and remembers the
// first thing that was wrong ("frame: is missing"). For long lists, where JSON
// costs more than what it tells. The line must outlive the reader. Not thread-safe.
class TabLine {
 public:
  explicit TabLine(std::string_view line) : rest_(line) {}

  // 1 to `bytes_max` bytes.
  std::string_view Text(std::string_view name, size_t bytes_max);
  // Decimal.
  int64_t Number(std::string_view name, int64_t min, int64_t max = INT64_MAX);
  // 64 lower-case hex digits.
  Digest Sha256(std::string_view name);
  // Records an error of the caller's own.
  void Fail(std::string_view name, std::string_view problem);

  bool has_more() const { return has_more_; }
  // OK, or INVALID_ARGUMENT with the first problem.
  const absl::Status& status() const { return status_; }

 private:
  std::string_view rest_;
  bool has_more_ = true;
  absl::Status status_;
};

}  // namespace cachewarm::codec
