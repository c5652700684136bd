// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Encodes numbers in few bytes, for data that the same process reads back. Not for untrusted input:
// a truncated number is decoded without an error.
namespace cachewarm::codec {

// Appends a number as little-endian groups of 7 bits.
inline void AppendNumber(uint64_t number, std::string& out) {
  while (number >= 0x80U) {
    out.push_back(static_cast<char>((number & 0x7FU) | 0x80U));
    number >>= 7U;
  }
  out.push_back(static_cast<char>(number));
}

// Removes the first number from `bytes` and returns it.
inline uint64_t ShiftNumber(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) {
      break;
    }
  }
  return number;
}

}  // namespace cachewarm::codec
