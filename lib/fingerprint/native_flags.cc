// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/fingerprint/cpu_class.h"

namespace cachewarm::fingerprint {
namespace {

// Names of arch/x86/include/asm/cpufeatures.h. Changing a list changes every CPU class and so
// every key: nodes compile once more, nothing breaks.
const std::vector<std::string_view>& X86Flags() {
  static const std::vector<std::string_view> flags = {"3dnowprefetch",
                                                      "abm",
                                                      "adx",
                                                      "aes",
                                                      "amx_bf16",
                                                      "amx_complex",
                                                      "amx_fp16",
                                                      "amx_int8",
                                                      "amx_tile",
                                                      "avx",
                                                      "avx10",
                                                      "avx2",
                                                      "avx512_4fmaps",
                                                      "avx512_4vnniw",
                                                      "avx512_bf16",
                                                      "avx512_bitalg",
                                                      "avx512_fp16",
                                                      "avx512_vbmi2",
                                                      "avx512_vnni",
                                                      "avx512_vp2intersect",
                                                      "avx512_vpopcntdq",
                                                      "avx512bw",
                                                      "avx512cd",
                                                      "avx512dq",
                                                      "avx512er",
                                                      "avx512f",
                                                      "avx512ifma",
                                                      "avx512pf",
                                                      "avx512vbmi",
                                                      "avx512vl",
                                                      "avx_ifma",
                                                      "avx_ne_convert",
                                                      "avx_vnni",
                                                      "avx_vnni_int16",
                                                      "avx_vnni_int8",
                                                      "bmi1",
                                                      "bmi2",
                                                      "cldemote",
                                                      "clflushopt",
                                                      "clwb",
                                                      "clzero",
                                                      "cmov",
                                                      "cmpccxadd",
                                                      "cx16",
                                                      "cx8",
                                                      "enqcmd",
                                                      "f16c",
                                                      "fma",
                                                      "fma4",
                                                      "fsgsbase",
                                                      "fxsr",
                                                      "gfni",
                                                      "hle",
                                                      "lahf_lm",
                                                      "lwp",
                                                      "mmx",
                                                      "movbe",
                                                      "movdir64b",
                                                      "movdiri",
                                                      "mwaitx",
                                                      "pclmulqdq",
                                                      "pni",
                                                      "popcnt",
                                                      "prefetchi",
                                                      "ptwrite",
                                                      "raoint",
                                                      "rdpid",
                                                      "rdrand",
                                                      "rdseed",
                                                      "rtm",
                                                      "serialize",
                                                      "sha512",
                                                      "sha_ni",
                                                      "sm3",
                                                      "sm4",
                                                      "sse",
                                                      "sse2",
                                                      "sse4_1",
                                                      "sse4_2",
                                                      "sse4a",
                                                      "ssse3",
                                                      "tbm",
                                                      "tsxldtrk",
                                                      "vaes",
                                                      "vpclmulqdq",
                                                      "waitpkg",
                                                      "wbnoinvd",
                                                      "xop",
                                                      "xsave",
                                                      "xsavec",
                                                      "xsaveopt",
                                                      "xsaves"};
  return flags;
}

// Names of arch/arm64/kernel/cpuinfo.c.
const std::vector<std::string_view>& Arm64Flags() {
  static const std::vector<std::string_view> flags = {
      "aes",      "asimd",     "asimddp", "asimdfhm",  "asimdhp",   "asimdrdm", "atomics",
      "bf16",     "bti",       "crc32",   "cssc",      "dcpodp",    "dcpop",    "dgh",
      "ebf16",    "fcma",      "flagm",   "flagm2",    "fp",        "fphp",     "frint",
      "i8mm",     "ilrcpc",    "jscvt",   "lrcpc",     "lrcpc3",    "lse128",   "mops",
      "mte",      "paca",      "pacg",    "pmull",     "rng",       "rprfm",    "sb",
      "sha1",     "sha2",      "sha3",    "sha512",    "sm3",       "sm4",      "sme",
      "sme2",     "smeb16b16", "smebf16", "smef16f16", "smef32f32", "smefa64",  "smei8i32",
      "ssbs",     "sve",       "sve2",    "sve2p1",    "sveaes",    "svebf16",  "svebitperm",
      "svef32mm", "svef64mm",  "svei8mm", "svepmull",  "svesha3",   "svesm4",   "uscat"};
  return flags;
}

}  // namespace

const std::vector<std::string_view>& NativeFlags(std::string_view architecture) {
  static const std::vector<std::string_view> none;
  if (architecture == "x86_64") {
    return X86Flags();
  }
  return architecture == "aarch64" ? Arm64Flags() : none;
}

}  // namespace cachewarm::fingerprint
