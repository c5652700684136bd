// SPDX-License-Identifier: Apache-2.0
#include "lib/base/platform/x86/sha256_blocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cachewarm::x86 {

#if defined(__x86_64__)
namespace {

// For functions that are inlined into one that has the instructions too.
#define CW_WITH_SHA __attribute__((target("sha,ssse3,sse4.1")))
#define CW_INLINE_WITH_SHA CW_WITH_SHA __attribute__((always_inline)) inline

// FIPS 180-4 §4.2.2.
alignas(16) constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

CW_INLINE_WITH_SHA __m128i Load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

// The working variables of one lane in the order that the instructions want (Intel SDM,
// SHA256RNDS2) and four schedule words at a time.
struct Registers {
  __m128i abef;
  __m128i cdgh;
  __m128i words[4];
};

CW_INLINE_WITH_SHA void Open(const Sha256State& state, Registers& lane) {
  const __m128i badc = _mm_shuffle_epi32(Load(state.data()), 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(Load(state.data() + 4), 0x1B);
  lane.abef = _mm_alignr_epi8(badc, hgfe, 8);
  lane.cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
}

CW_INLINE_WITH_SHA void Close(const Registers& lane, Sha256State& state) {
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(lane.cdgh, 0xB1);
  auto* const to = reinterpret_cast<__m128i*>(state.data());
  _mm_storeu_si128(to, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(to + 1, _mm_alignr_epi8(dchg, feba, 8));
}

// Rounds 4n to 4n + 3, and what they can do for the schedule words of the rounds to come.
CW_INLINE_WITH_SHA void FourRounds(Registers& lane, int n, const char* block) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i& now = lane.words[n % 4];
  __m128i& before = lane.words[(n + 3) % 4];
  __m128i& next = lane.words[(n + 1) % 4];
  if (n < 4) {
    now = _mm_shuffle_epi8(Load(block + 16 * n), big_endian);
  }
  __m128i sum = _mm_add_epi32(now, Load(&kRound[4 * static_cast<size_t>(n)]));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, sum);
  if (n >= 3 && n < 15) {
    next = _mm_sha256msg2_epu32(_mm_add_epi32(next, _mm_alignr_epi8(now, before, 4)), now);
  }
  sum = _mm_shuffle_epi32(sum, 0x0E);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, sum);
  if (n >= 1 && n < 13) {
    before = _mm_sha256msg1_epu32(before, now);
  }
}

template <size_t kLanes>
CW_WITH_SHA void Hash(const std::array<Sha256Lane, kLanes>& lanes, size_t blocks) {
  Registers registers[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Open(*lanes[lane].state, registers[lane]);
  }
  for (size_t block = 0; block < blocks; ++block) {
    Registers before[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      before[lane].abef = registers[lane].abef;
      before[lane].cdgh = registers[lane].cdgh;
    }
#pragma GCC unroll 16
    for (int n = 0; n < 16; ++n) {
#pragma GCC unroll 2
      for (size_t lane = 0; lane < kLanes; ++lane) {
        FourRounds(registers[lane], n, lanes[lane].text + block * kBlockBytes);
      }
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      registers[lane].abef = _mm_add_epi32(registers[lane].abef, before[lane].abef);
      registers[lane].cdgh = _mm_add_epi32(registers[lane].cdgh, before[lane].cdgh);
    }
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Close(registers[lane], *lanes[lane].state);
  }
}

}  // namespace

bool HasSha256Instructions() {
  constexpr unsigned kShaBit = 1U << 29U;  // leaf 7, EBX
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kShaBit) != 0 &&
         __builtin_cpu_supports("ssse3") != 0 && __builtin_cpu_supports("sse4.1") != 0;
}

void HashBlocks(const Sha256Lane& lane, size_t blocks) {
  Hash(std::array{lane}, blocks);
}

void HashBlocks(const Sha256Lane& a, const Sha256Lane& b, size_t blocks) {
  Hash(std::array{a, b}, blocks);
}

#else

bool HasSha256Instructions() {
  return false;
}

void HashBlocks(const Sha256Lane& /*lane*/, size_t /*blocks*/) {}

void HashBlocks(const Sha256Lane& /*a*/, const Sha256Lane& /*b*/, size_t /*blocks*/) {}

#endif

}  // namespace cachewarm::x86
