// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/entry_scan.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "fmt/format.h"
#include "lib/caches/glob.h"
#include "lib/caches/kind.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kVersionMax = 64;
// A pickled torch version begins with the names of its module and class. This size is enough for
// both.
constexpr size_t kPickledValueMax = 120;
static_assert(kPickledValueMax + kVersionMax < kScanOverlapBytes);

// Calls memmem(), which is several times faster than std::string_view::find() on long texts.
size_t Find(std::string_view text, std::string_view what) {
  const void* found = ::memmem(text.data(), text.size(), what.data(), what.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool IsVersion(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= kVersionMax && is_digit(text.front()) &&
         text.find('.') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [&is_digit](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  std::string_view(".+-_!").find(c) != std::string_view::npos;
         });
}

// Returns the component `index` of the path; empty if the path has fewer components.
std::string_view Component(std::string_view path, int index) {
  for (int i = 0; i < index; ++i) {
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) {
      return {};
    }
    path.remove_prefix(slash + 1);
  }
  return path.substr(0, path.find('/'));
}

// Returns the first version among the strings at the start of the pickled `bytes` (pickletools,
// SHORT_BINUNICODE: 0x8c, one byte of length, the text).
std::string_view PickledVersion(std::string_view bytes) {
  bytes = bytes.substr(0, kPickledValueMax + kVersionMax);
  for (size_t at = bytes.find('\x8c'); at != std::string_view::npos && at + 2 <= bytes.size();
       at = bytes.find('\x8c', at + 1)) {
    const size_t length = static_cast<unsigned char>(bytes[at + 1]);
    const std::string_view text = bytes.substr(at + 2, length);
    if (text.size() == length && IsVersion(text)) {
      return text;
    }
  }
  return {};
}

// Returns TEXT of the JSON member "NAME": "TEXT".
std::string_view JsonText(std::string_view bytes, std::string_view name) {
  const std::string quoted = fmt::format("\"{}\"", name);
  const size_t at = Find(bytes, quoted);
  if (at == std::string_view::npos) {
    return {};
  }
  std::string_view rest = bytes.substr(at + quoted.size(), kVersionMax * 2);
  const size_t quote = rest.find_first_not_of(" :\n\t");
  if (quote == std::string_view::npos || rest[quote] != '"') {
    return {};
  }
  rest.remove_prefix(quote + 1);
  const size_t end = rest.find('"');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::string_view TextOf(const VersionRow& row, std::string_view bytes, bool is_first) {
  switch (row.place) {
    case VersionRow::Place::kPath:
      return {};
    case VersionRow::Place::kJsonMember:
      return JsonText(bytes, row.before);
    case VersionRow::Place::kPickledMember: {
      std::string name = "\x8c";
      name += static_cast<char>(row.before.size());
      name += row.before;
      name += '\x94';
      const size_t at = Find(bytes, name);
      return at == std::string_view::npos ? std::string_view()
                                          : PickledVersion(bytes.substr(at + name.size()));
    }
    case VersionRow::Place::kPickledFirst:
      return is_first ? PickledVersion(bytes.substr(0, kVersionMax)) : std::string_view();
  }
  return {};
}

// Calls `visit(row, below)` for each VersionRow of the file's kind that matches the file; `below`
// is the path of the file below the kind's directory.
template <typename Visit>
void ForEachVersionRow(const Placement& placement, std::string_view path, const Visit& visit) {
  const CacheKind* kind = placement.carried() ? FindKind(placement.cache) : nullptr;
  if (kind == nullptr || placement.below == 0 || placement.below >= path.size()) {
    return;
  }
  const std::string_view below = path.substr(placement.below);
  for (const VersionRow& row : kind->versions) {
    if (GlobMatches(row.glob, below)) {
      visit(row, below);
    }
  }
}

}  // namespace

bool MayHoldHostCode(const Placement& placement) {
  return placement.carried() && placement.may_hold_cpp;
}

bool ContainsHostCode(std::string_view bytes) {
  constexpr std::string_view kMarkers[] = {
      "cpp_pybinding", "at::vec", "torch/csrc/inductor/cpp_prefix.h", "\"backend\": \"cpu\""};
  return std::any_of(std::begin(kMarkers), std::end(kMarkers), [bytes](std::string_view marker) {
    return Find(bytes, marker) != std::string_view::npos;
  });
}

bool MayHoldVersion(const Placement& placement, std::string_view path) {
  bool may = false;
  ForEachVersionRow(placement, path, [&may](const VersionRow& row, std::string_view /*below*/) {
    may = may || row.place != VersionRow::Place::kPath;
  });
  return may;
}

std::vector<EngineVersion> VersionsInPath(const Placement& placement, std::string_view path) {
  std::vector<EngineVersion> found;
  ForEachVersionRow(placement, path, [&found](const VersionRow& row, std::string_view below) {
    std::string_view text = Component(below, row.component);
    if (row.place != VersionRow::Place::kPath || !text.starts_with(row.before)) {
      return;
    }
    text.remove_prefix(row.before.size());
    if (IsVersion(text)) {
      found.push_back({std::string(row.engine), std::string(text)});
    }
  });
  return found;
}

std::vector<EngineVersion> VersionsInText(const Placement& placement, std::string_view path,
                                          std::string_view bytes, bool is_first) {
  std::vector<EngineVersion> found;
  ForEachVersionRow(placement, path, [&](const VersionRow& row, std::string_view /*below*/) {
    if (const std::string_view text = TextOf(row, bytes, is_first); IsVersion(text)) {
      found.push_back({std::string(row.engine), std::string(text)});
    }
  });
  return found;
}

}  // namespace cachewarm::caches
