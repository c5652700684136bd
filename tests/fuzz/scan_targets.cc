// SPDX-License-Identifier: Apache-2.0
// Targets that scan the files of a cache directory, which pods write.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/caches/cache_table.h"
#include "lib/caches/entry_scan.h"
#include "lib/caches/file_check.h"
#include "lib/caches/gpu_images.h"
#include "lib/caches/relocate.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

// Removes the text up to the first line feed from `bytes` and returns it.
std::string_view TakeLine(std::string_view& bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  return line;
}

struct Facts {
  bool host_code = false;
  caches::StoredCompileTime time;
};

// Scans `content` in chunks of `step` bytes that overlap, as a capture does.
Facts ScanInChunks(std::string_view content, size_t step) {
  Facts facts;
  size_t kept = 0;
  for (size_t at = 0; at < content.size(); at += step) {
    const std::string_view text = content.substr(at - kept, kept + step);
    facts.time -= caches::FindCompileTime(text.substr(0, kept));
    facts.time += caches::FindCompileTime(text);
    facts.host_code = facts.host_code || caches::ContainsHostCode(text);
    kept = std::min(text.size(), caches::kScanOverlapBytes);
  }
  return facts;
}

bool IsArchitecture(std::string_view name) {
  const bool known =
      name.starts_with("sm_") || name.starts_with("compute_") || name.starts_with("gfx");
  return known && name.size() <= 16 && std::all_of(name.begin(), name.end(), [](char c) {
           return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
         });
}

}  // namespace

// Input: a path, a line feed, and the content of the file.
void ScannedEntry(std::string_view bytes) {
  const std::string_view path = TakeLine(bytes);
  const caches::Placement placement = caches::CacheTable::AllPresets().Classify(path);
  std::vector<caches::EngineVersion> found = caches::VersionsInPath(placement, path);
  for (const bool is_first : {true, false}) {
    const auto more = caches::VersionsInText(placement, path, bytes, is_first);
    Require(more.empty() || caches::MayHoldVersion(placement, path),
            "only a file that may hold a version is scanned");
    found.insert(found.end(), more.begin(), more.end());
  }
  for (const caches::EngineVersion& each : found) {
    Require(!each.engine.empty() && !each.version.empty() && each.version.size() <= 64 &&
                each.version.find_first_of(" \n\t\"'/|,;") == std::string::npos,
            "a version is one short word");
  }
  const caches::StoredCompileTime whole = caches::FindCompileTime(bytes);
  const bool host_code = caches::ContainsHostCode(bytes);
  for (const size_t step : {size_t{1}, size_t{300}, size_t{4096}}) {
    const Facts facts = ScanInChunks(bytes, step);
    Require(facts.host_code == host_code, "chunks do not hide host code");
    Require(facts.time.graph_ns == whole.graph_ns && facts.time.autograd_ns == whole.autograd_ns,
            "chunks do not change the compile time");
  }
}

// Input: a file with GPU code.
void GpuCode(std::string_view bytes) {
  uint64_t read = 0;
  const auto look = [bytes, &read](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
    read += size;
    return offset >= bytes.size() ? std::string()
                                  : std::string(bytes.substr(static_cast<size_t>(offset), size));
  };
  // A file that shrinks while it is read ends earlier than its size says.
  for (const uint64_t size :
       {uint64_t{bytes.size()}, uint64_t{bytes.size()} * 3, uint64_t{INT64_MAX}}) {
    read = 0;
    const auto found = caches::FindGpuCode(size, look);
    Require(found.ok(), "a malformed file is no error");
    Require(read <= 1U << 20U, "at most 1 MiB is read");
    for (const std::string& name : *found) {
      Require(IsArchitecture(name), "an architecture is one short word");
    }
  }
}

// Input: a path, a line feed, a directory, a line feed, and the text of the file.
void OwnPaths(std::string_view bytes) {
  const std::string_view path = TakeLine(bytes);
  const std::string_view directory = TakeLine(bytes);
  caches::Placement placement = caches::CacheTable::AllPresets().Classify(path);
  placement.own_paths = true;
  const auto once = caches::Relocate(bytes, placement, path, directory);
  if (once.has_value()) {
    Require(*once != bytes, "a text without a change is not written again");
    Require(std::count(once->begin(), once->end(), '\n') ==
                std::count(bytes.begin(), bytes.end(), '\n'),
            "a path stays on its line");
    Require(!caches::Relocate(*once, placement, path, directory).has_value(),
            "a relocated text needs no further change");
  }
}

}  // namespace cachewarm::fuzz
