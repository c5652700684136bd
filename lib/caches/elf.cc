// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/elf.h"

namespace cachewarm::caches {
namespace {

// Reads `width` bytes at `at` in the file's byte order. The caller has checked the bounds.
uint64_t Number(std::string_view bytes, size_t at, size_t width, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    const size_t from = big_endian ? at + i : at + width - 1 - i;
    value = value << 8U | static_cast<unsigned char>(bytes[from]);
  }
  return value;
}

uint64_t TableEnd(uint64_t at, uint32_t count, uint32_t size) {
  if (at == 0) {
    return 0;
  }
  const uint64_t bytes = uint64_t{count} * size;
  return at > UINT64_MAX - bytes ? UINT64_MAX : at + bytes;
}

}  // namespace

uint64_t ElfHeader::sections_end() const {
  return TableEnd(sections_at, sections, section_size);
}
uint64_t ElfHeader::segments_end() const {
  return TableEnd(segments_at, segments, segment_size);
}

std::optional<ElfHeader> ParseElfHeader(std::string_view head) {
  constexpr size_t kBytes32 = 52;
  constexpr size_t kBytes64 = 64;
  if (head.size() < kBytes32 || !head.starts_with("\x7f"
                                                  "ELF")) {
    return std::nullopt;
  }
  const char elf_class = head[4];
  const char order = head[5];
  if ((elf_class != 1 && elf_class != 2) || (order != 1 && order != 2) ||
      (elf_class == 2 && head.size() < kBytes64)) {
    return std::nullopt;
  }
  ElfHeader elf{.is_64_bit = elf_class == 2, .big_endian = order == 2};
  const auto at = [&](size_t offset32, size_t offset64, size_t width) {
    return Number(head, elf.is_64_bit ? offset64 : offset32, width, elf.big_endian);
  };
  const size_t word = elf.is_64_bit ? 8 : 4;
  elf.os_abi = static_cast<uint8_t>(head[7]);
  elf.abi_version = static_cast<uint8_t>(head[8]);
  elf.machine = static_cast<uint16_t>(at(18, 18, 2));
  elf.segments_at = at(28, 32, word);
  elf.sections_at = at(32, 40, word);
  elf.flags = static_cast<uint32_t>(at(36, 48, 4));
  elf.segment_size = static_cast<uint32_t>(at(42, 54, 2));
  elf.segments = static_cast<uint32_t>(at(44, 56, 2));
  elf.section_size = static_cast<uint32_t>(at(46, 58, 2));
  elf.sections = static_cast<uint32_t>(at(48, 60, 2));
  return elf;
}

uint64_t SegmentEnd(const ElfHeader& elf, std::string_view table, uint32_t index) {
  const size_t least = elf.is_64_bit ? 56 : 32;
  const size_t at = size_t{index} * elf.segment_size;
  if (elf.segment_size < least || table.size() < at + least) {
    return UINT64_MAX;
  }
  const size_t word = elf.is_64_bit ? 8 : 4;
  const uint64_t offset = Number(table, at + (elf.is_64_bit ? 8 : 4), word, elf.big_endian);
  const uint64_t bytes = Number(table, at + (elf.is_64_bit ? 32 : 16), word, elf.big_endian);
  return offset > UINT64_MAX - bytes ? UINT64_MAX : offset + bytes;
}

}  // namespace cachewarm::caches
