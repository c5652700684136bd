// SPDX-License-Identifier: Apache-2.0
// Pickle protocol 4 writes an attribute as SHORT_BINUNICODE <length> <name> MEMOIZE and then its
// value: BININT1, BININT2, BININT or LONG1 (pickletools).
#include <limits>
#include <optional>

#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

// Longer times are ignored as implausible: no compile takes a day.
constexpr int64_t kCompileNsMax = int64_t{86'400} * 1'000'000'000;

// All three attribute names end with kNameEnd, so one scan finds them; their prefixes distinguish
// them.
constexpr std::string_view kNameEnd = "_time_taken_ns\x94";
constexpr std::string_view kGraph = "\x8c\x0e";
constexpr std::string_view kForward =
    "\x8c\x15"
    "forward";
constexpr std::string_view kBackward =
    "\x8c\x16"
    "backward";
constexpr size_t kLong1BytesMax = 10;
static_assert(kBackward.size() + kNameEnd.size() + kLong1BytesMax == kCompileTimeBytesMax);

int64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<int64_t>(value);
}

// Decodes the pickled integer at the start of `bytes`; nullopt if there is none.
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

bool IsPlausible(const std::optional<int64_t>& value) {
  return value.has_value() && *value > 0 && *value <= kCompileNsMax;
}

// Adds without overflow: a crafted file of 64 MiB can hold so many entries of a day each that the
// sum exceeds 64 bits.
void AddSaturated(int64_t& sum, int64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) {
    sum = std::numeric_limits<int64_t>::max();
  }
}

}  // namespace

StoredCompileTime& StoredCompileTime::operator+=(const StoredCompileTime& other) {
  AddSaturated(graph_ns, other.graph_ns);
  AddSaturated(autograd_ns, other.autograd_ns);
  return *this;
}

StoredCompileTime& StoredCompileTime::operator-=(const StoredCompileTime& other) {
  graph_ns -= other.graph_ns;
  autograd_ns -= other.autograd_ns;
  return *this;
}

double StoredCompileTime::Seconds() const {
  return static_cast<double>(autograd_ns > 0 ? autograd_ns : graph_ns) / 1e9;
}

StoredCompileTime FindCompileTime(std::string_view bytes) {
  StoredCompileTime found;
  for (size_t at = bytes.find(kNameEnd); at != std::string_view::npos;
       at = bytes.find(kNameEnd, at + kNameEnd.size())) {
    const std::optional<int64_t> value = PickledInteger(bytes.substr(at + kNameEnd.size()));
    if (!IsPlausible(value)) {
      continue;
    }
    const std::string_view before = bytes.substr(0, at);
    if (before.ends_with(kGraph)) {
      AddSaturated(found.graph_ns, *value);
    } else if (before.ends_with(kForward) || before.ends_with(kBackward)) {
      AddSaturated(found.autograd_ns, *value);
    }
  }
  return found;
}

bool StoresCompileTime(const Placement& placement) {
  return placement.carried() && placement.role == Role::kIndex &&
         (placement.cache == "torchinductor" || placement.cache == "vllm");
}

}  // namespace cachewarm::caches
