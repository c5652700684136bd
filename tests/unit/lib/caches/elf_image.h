// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace cachewarm::caches {

struct ElfImageSpec {
  bool is_64_bit = true;
  bool big_endian = false;
  uint8_t os_abi = 0;
  uint16_t machine = 62;
  uint32_t flags = 0;
  size_t payload = 256;
};

// Builds an ELF file of one segment, which covers header and payload, and a section table after it
// that ends at the last byte.
inline std::string ElfImage(const ElfImageSpec& spec) {
  std::string out(
      "\x7f"
      "ELF");
  const auto put = [&](uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      const size_t shift = 8 * (spec.big_endian ? width - 1 - i : i);
      out += static_cast<char>(value >> shift & 0xFFU);
    }
  };
  const size_t word = spec.is_64_bit ? 8 : 4;
  const size_t header = spec.is_64_bit ? 64 : 52;
  const size_t segment = spec.is_64_bit ? 56 : 32;
  const size_t section = spec.is_64_bit ? 64 : 40;
  const uint64_t sections_at = header + segment + spec.payload;
  out += spec.is_64_bit ? '\2' : '\1';
  out += spec.big_endian ? '\2' : '\1';
  out += '\1';
  out += static_cast<char>(spec.os_abi);
  out.append(8, '\0');
  put(3, 2);
  put(spec.machine, 2);
  put(1, 4);
  put(0, word);
  put(header, word);
  put(sections_at, word);
  put(spec.flags, 4);
  put(header, 2);
  put(segment, 2);
  put(1, 2);
  put(section, 2);
  put(2, 2);
  put(1, 2);
  // The one PT_LOAD segment.
  put(1, 4);
  if (spec.is_64_bit) {
    put(5, 4);
  }
  put(0, word);
  put(0, word);
  put(0, word);
  put(sections_at, word);
  put(sections_at, word);
  if (!spec.is_64_bit) {
    put(5, 4);
  }
  put(4096, word);
  out.resize(sections_at, 'p');
  out.append(2 * section, '\0');
  return out;
}

}  // namespace cachewarm::caches
