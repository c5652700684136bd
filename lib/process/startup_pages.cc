// SPDX-License-Identifier: Apache-2.0
#include "lib/process/startup_pages.h"

#include <sys/mman.h>

#include <optional>
#include <sstream>
#include <string>

#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::process {
namespace {

constexpr int64_t kSmapsBytesMax = 16 << 20;

struct Head {
  Mapping mapping;
  bool is_candidate = false;
};

// Parses the first line of a mapping: "55d0-55d4 r-xp 00002000 08:01 123 /usr/bin/x".
std::optional<Head> ParseHead(const std::string& line) {
  std::istringstream words(line);
  Head head;
  char dash = 0;
  std::string rights;
  std::string offset;
  std::string device;
  uint64_t inode = 0;
  std::string path;
  words >> std::hex >> head.mapping.begin >> dash >> head.mapping.end >> std::dec >> rights >>
      offset >> device >> inode;
  if (!words || dash != '-') {
    return std::nullopt;
  }
  words >> path;  // the first word of a path with blanks; enough to see if it is absolute
  const bool is_constant = rights == "r--p" || rights == "r-xp";
  head.is_candidate =
      is_constant && inode != 0 && path.starts_with('/') && head.mapping.begin < head.mapping.end;
  return head;
}

bool SaysNoneIsChanged(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  uint64_t kilobytes = 0;
  return words >> name >> kilobytes && name == "Anonymous:" && kilobytes == 0;
}

}  // namespace

std::vector<Mapping> UnchangedFiles(const std::string& smaps) {
  std::vector<Mapping> out;
  std::optional<Head> head;
  std::istringstream lines(smaps);
  for (std::string line; std::getline(lines, line);) {
    if (const auto next = ParseHead(line); next.has_value()) {
      head = next;
    } else if (head.has_value() && head->is_candidate && SaysNoneIsChanged(line)) {
      out.push_back(head->mapping);
      head.reset();
    }
  }
  return out;
}

absl::StatusOr<size_t> DropStartupPages() {
  CW_ASSIGN_OR_RETURN(const std::string smaps,
                      fs::ReadNamedFile("/proc/self/smaps", kSmapsBytesMax));
  size_t bytes = 0;
  for (const Mapping& mapping : UnchangedFiles(smaps)) {
    const size_t size = mapping.end - mapping.begin;
    // Unchanged pages are read from their file again when needed (madvise(2)). If the kernel
    // refuses, they stay resident.
    if (madvise(reinterpret_cast<void*>(mapping.begin), size, MADV_DONTNEED) == 0) {
      bytes += size;
    }
  }
  return bytes;
}

}  // namespace cachewarm::process
