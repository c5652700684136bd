// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Inside this folder only.
namespace cachewarm::x86 {

inline constexpr size_t kBlockBytes = 64;

using Sha256State = std::array<uint32_t, 8>;

// FIPS 180-4 §5.3.3.
inline constexpr Sha256State kSha256Start = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// Where the next whole blocks of a text are.
struct Sha256Lane {
  Sha256State* state;
  const char* text;
};

// The processor has the SHA, SSSE3 and SSE4.1 instructions.
bool HasSha256Instructions();

// FIPS 180-4 §6.2.2 on `blocks` blocks of one lane, or of two at the same time. Requires
// HasSha256Instructions().
void HashBlocks(const Sha256Lane& lane, size_t blocks);
void HashBlocks(const Sha256Lane& a, const Sha256Lane& b, size_t blocks);

}  // namespace cachewarm::x86
