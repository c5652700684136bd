// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/fingerprint/cpu_class.h"

namespace cachewarm::fingerprint {
namespace {

// A change of one of these lists changes CPU classes and thus keys, so all nodes compile again. The
// names are those of arch/x86/include/asm/cpufeatures.h, sorted by bytes.
constexpr std::string_view kX86 =
    "3dnowprefetch abm adx aes amx_bf16 amx_complex amx_fp16 amx_int8 amx_tile avx avx10 "
    "avx2 avx512_4fmaps avx512_4vnniw avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 "
    "avx512_vnni avx512_vp2intersect avx512_vpopcntdq avx512bw avx512cd avx512dq avx512er "
    "avx512f avx512ifma avx512pf avx512vbmi avx512vl avx_ifma avx_ne_convert avx_vnni "
    "avx_vnni_int16 avx_vnni_int8 bmi1 bmi2 cldemote clflushopt clwb clzero cmov cmpccxadd "
    "cx16 cx8 enqcmd f16c fma fma4 fsgsbase fxsr gfni hle lahf_lm lwp mmx movbe movdir64b "
    "movdiri mwaitx pclmulqdq pni popcnt prefetchi ptwrite raoint rdpid rdrand rdseed rtm "
    "serialize sha512 sha_ni sm3 sm4 sse sse2 sse4_1 sse4_2 sse4a ssse3 tbm tsxldtrk vaes "
    "vpclmulqdq waitpkg wbnoinvd xop xsave xsavec xsaveopt xsaves";

// The names are those of arch/arm64/kernel/cpuinfo.c, sorted by bytes.
constexpr std::string_view kArm64 =
    "aes asimd asimddp asimdfhm asimdhp asimdrdm atomics bf16 bti crc32 cssc dcpodp dcpop "
    "dgh ebf16 fcma flagm flagm2 fp fphp frint i8mm ilrcpc jscvt lrcpc lrcpc3 lse128 mops "
    "mte paca pacg pmull rng rprfm sb sha1 sha2 sha3 sha512 sm3 sm4 sme sme2 smeb16b16 "
    "smebf16 smef16f16 smef32f32 smefa64 smei8i32 ssbs sve sve2 sve2p1 sveaes svebf16 "
    "svebitperm svef32mm svef64mm svei8mm svepmull svesha3 svesm4 uscat";

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

const std::vector<std::string_view>& NativeFlags(std::string_view architecture) {
  static const std::vector<std::string_view> x86 = WordsOf(kX86);
  static const std::vector<std::string_view> arm64 = WordsOf(kArm64);
  static const std::vector<std::string_view> none;
  return architecture == "x86_64" ? x86 : architecture == "aarch64" ? arm64 : none;
}

}  // namespace cachewarm::fingerprint
