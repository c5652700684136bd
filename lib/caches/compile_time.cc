// SPDX-License-Identifier: Apache-2.0
// Pickle protocol 4 writes an attribute as SHORT_BINUNICODE <length> <name> MEMOIZE and then its
// value: BININT1, BININT2, BININT or LONG1 (pickletools).
#include <optional>

#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

// A day: nothing compiles longer, and sums of a million entries stay within 64 bits.
constexpr int64_t kMostNs = int64_t{86'400} * 1'000'000'000;

int64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<int64_t>(value);
}

// The integer whose opcode stands at the start of `bytes`.
std::optional<int64_t> PickledInteger(std::string_view bytes) {
  if (bytes.size() < 2) {
    return std::nullopt;
  }
  size_t first = 1;
  size_t width = 0;
  switch (bytes.front()) {
    case 'K':
      width = 1;
      break;
    case 'M':
      width = 2;
      break;
    case 'J':
      width = 4;
      break;
    case '\x8a':
      first = 2;
      width = static_cast<unsigned char>(bytes[1]);
      break;
    default:
      return std::nullopt;
  }
  if (width == 0 || width > 8 || bytes.size() < first + width) {
    return std::nullopt;
  }
  return LittleEndian(bytes.substr(first, width));
}

// Sum over every place where the attribute is written out; implausible values are left out.
int64_t Sum(std::string_view bytes, std::string_view name) {
  std::string marker = "\x8c";
  marker += static_cast<char>(name.size());
  marker += name;
  marker += '\x94';
  int64_t sum = 0;
  for (size_t at = bytes.find(marker); at != std::string_view::npos;
       at = bytes.find(marker, at + marker.size())) {
    const std::optional<int64_t> value = PickledInteger(bytes.substr(at + marker.size()));
    if (value.has_value() && *value > 0 && *value <= kMostNs) {
      sum += *value;
    }
  }
  return sum;
}

}  // namespace

StoredCompileTime& StoredCompileTime::operator+=(const StoredCompileTime& other) {
  graph_ns += other.graph_ns;
  autograd_ns += other.autograd_ns;
  return *this;
}

double StoredCompileTime::Seconds() const {
  return static_cast<double>(autograd_ns > 0 ? autograd_ns : graph_ns) / 1e9;
}

StoredCompileTime FindCompileTime(std::string_view bytes) {
  return {
      .graph_ns = Sum(bytes, "_time_taken_ns"),
      .autograd_ns = Sum(bytes, "forward_time_taken_ns") + Sum(bytes, "backward_time_taken_ns")};
}

bool StoresCompileTime(const Placement& placement) {
  return placement.carried() && placement.role == Role::kIndex &&
         (placement.cache == "torchinductor" || placement.cache == "vllm");
}

}  // namespace cachewarm::caches
