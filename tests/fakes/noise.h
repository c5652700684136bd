// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cachewarm::fakes {

// Bytes that do not compress and depend on `seed` only.
inline std::string Noise(size_t bytes, uint32_t seed) {
  std::string text(bytes, '\0');
  uint32_t state = seed * 2654435761U + 1;
  for (char& c : text) {
    state ^= state << 13U;
    state ^= state >> 17U;
    state ^= state << 5U;
    c = static_cast<char>(state & 0xFFU);
  }
  return text;
}

}  // namespace cachewarm::fakes
