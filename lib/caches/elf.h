// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// Internal to lib/caches. Parses the part of an ELF file (gABI 4.1) that shows whether the file is
// truncated.
namespace cachewarm::caches {

inline constexpr size_t kElfHeaderMax = 64;

struct ElfHeader {
  bool is_64_bit = true;  // ELFCLASS64
  bool big_endian = false;
  uint8_t os_abi = 0;
  uint8_t abi_version = 0;
  uint16_t machine = 0;
  uint32_t flags = 0;
  uint64_t segments_at = 0;  // file offset of the program headers; 0: none
  uint64_t sections_at = 0;  // file offset of the section headers; 0: none
  uint32_t segments = 0;
  uint32_t segment_size = 0;
  uint32_t sections = 0;
  uint32_t section_size = 0;

  // Return the file offset just past the last byte of the table: 0 if the file has no such table,
  // UINT64_MAX on overflow.
  uint64_t sections_end() const;
  uint64_t segments_end() const;
};

// Parses `head`: the first kElfHeaderMax bytes of a file, or the whole file if it is shorter.
// Returns nullopt if `head` is not a complete ELF header of a known class and byte order.
std::optional<ElfHeader> ParseElfHeader(std::string_view head);

// Returns the file offset just past the last byte of segment `index`. `table` holds the program
// headers. Returns UINT64_MAX if `table` is truncated or the sum overflows.
uint64_t SegmentEnd(const ElfHeader& elf, std::string_view table, uint32_t index);

}  // namespace cachewarm::caches
