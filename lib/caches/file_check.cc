// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/file_check.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/elf.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kSegmentTableBytesMax = 64U << 10U;

bool IsObject(std::string_view path) {
  return path.ends_with(".so") || path.ends_with(".o") || path.ends_with(".cubin") ||
         path.ends_with(".hsaco");
}

bool MustNotBeEmpty(const Placement& placement, std::string_view path) {
  return placement.role == Role::kIndex || placement.role == Role::kNative || IsObject(path) ||
         path.ends_with(".py");
}

// Returns DATA_LOSS if a segment ends beyond the end of the file. The loader maps every segment,
// and access to a page beyond the end raises SIGBUS.
absl::Status CheckSegments(const ElfHeader& elf, uint64_t size, std::string_view path,
                           const ReadAt& read) {
  const uint64_t bytes = uint64_t{elf.segments} * elf.segment_size;
  if (bytes == 0 || bytes > kSegmentTableBytesMax) {
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(const std::string table, read(elf.segments_at, static_cast<size_t>(bytes)));
  for (uint32_t i = 0; i < elf.segments; ++i) {
    const uint64_t end = SegmentEnd(elf, table, i);
    if (end > size) {
      return absl::DataLossError(fmt::format(
          "{}: truncated ELF file: segment {} ends at byte {}, but the file has {} bytes", path, i,
          end, size));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElf(std::string_view path, uint64_t size, const ReadAt& read) {
  CW_ASSIGN_OR_RETURN(const std::string head, read(0, kElfHeaderMax));
  const std::optional<ElfHeader> elf = ParseElfHeader(head);
  if (!elf.has_value() && !path.ends_with(".so")) {
    // Not an ELF file, but valid: CuPy writes a hash before its cubins, and some compilers emit
    // bitcode.
    return absl::OkStatus();
  }
  if (!elf.has_value()) {
    return absl::DataLossError(fmt::format("{}: does not begin with a complete ELF header", path));
  }
  for (const uint64_t end : {elf->sections_end(), elf->segments_end()}) {
    if (end > size) {
      return absl::DataLossError(fmt::format(
          "{}: truncated ELF file: the header tables end at byte {}, but the file has {} bytes",
          path, end, size));
    }
  }
  return CheckSegments(*elf, size, path, read);
}

}  // namespace

absl::Status CheckWhole(const Placement& placement, std::string_view path, uint64_t size,
                        const ReadAt& read) {
  if (size == 0) {
    return MustNotBeEmpty(placement, path)
               ? absl::DataLossError(fmt::format("{}: empty file", path))
               : absl::OkStatus();
  }
  return IsObject(path) ? CheckElf(path, size, read) : absl::OkStatus();
}

}  // namespace cachewarm::caches
