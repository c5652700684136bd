// SPDX-License-Identifier: Apache-2.0
// Processors of real clusters, with the relevant lines of their /proc/cpuinfo.
#include <gmock/gmock.h>

#include <set>

#include "fmt/format.h"
#include "lib/fingerprint/cpu_class.h"

namespace cachewarm::fingerprint {
namespace {

using ::testing::Contains;
using ::testing::Not;

struct Machine {
  const char* name;
  const char* vendor;
  int family;
  int model;
  const char* flags;
  const char* expected;  // the class up to its hash
};

constexpr char kHaswell[] =
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse "
    "sse2 ss ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology nonstop_tsc "
    "cpuid "
    "pni pclmulqdq ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx f16c rdrand "
    "hypervisor lahf_lm abm invpcid_single fsgsbase bmi1 avx2 smep bmi2 erms invpcid xsaveopt";
constexpr char kSkylake[] =
    "fpu vme cx8 cmov mmx fxsr sse sse2 pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt "
    "aes xsave avx f16c rdrand hypervisor lahf_lm abm 3dnowprefetch fsgsbase bmi1 hle avx2 bmi2 "
    "rtm mpx avx512f avx512dq rdseed adx smap clflushopt clwb avx512cd avx512bw avx512vl xsaveopt "
    "xsavec xgetbv1 xsaves ida arat pku ospke";
constexpr char kSapphireRapids[] =
    "cx8 cmov mmx fxsr sse sse2 pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes xsave "
    "avx f16c rdrand lahf_lm abm 3dnowprefetch fsgsbase bmi1 avx2 bmi2 avx512f avx512dq rdseed adx "
    "avx512ifma clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xsaves avx_vnni "
    "avx512_bf16 wbnoinvd avx512vbmi avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg "
    "avx512_vpopcntdq rdpid cldemote movdiri movdir64b serialize amx_bf16 avx512_fp16 amx_tile "
    "amx_int8";
constexpr char kZen2[] =
    "cx8 cmov mmx fxsr sse sse2 pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes xsave "
    "avx f16c rdrand lahf_lm abm sse4a 3dnowprefetch fsgsbase bmi1 avx2 bmi2 rdseed adx clflushopt "
    "clwb sha_ni xsaveopt xsavec clzero wbnoinvd rdpid";
constexpr char kZen4[] =
    "cx8 cmov mmx fxsr sse sse2 pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes xsave "
    "avx f16c rdrand lahf_lm abm sse4a 3dnowprefetch fsgsbase bmi1 avx2 bmi2 avx512f avx512dq "
    "rdseed adx avx512ifma clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec "
    "xsaves avx512_bf16 clzero wbnoinvd avx512vbmi avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni "
    "avx512_bitalg avx512_vpopcntdq rdpid";

const std::vector<Machine>& X86Machines() {
  static const std::vector<Machine> machines = {
      {"Haswell", "GenuineIntel", 6, 63, kHaswell, "x86-64-v3/intel-6-63/"},
      {"Skylake-SP", "GenuineIntel", 6, 85, kSkylake, "x86-64-v4/intel-6-85/"},
      {"Sapphire Rapids", "GenuineIntel", 6, 143, kSapphireRapids, "x86-64-v4/intel-6-143/"},
      {"Zen 2 (Rome)", "AuthenticAMD", 23, 49, kZen2, "x86-64-v3/amd-23-49/"},
      {"Zen 4 (Genoa)", "AuthenticAMD", 25, 17, kZen4, "x86-64-v4/amd-25-17/"},
      {"Hygon", "HygonGenuine", 24, 1, kZen2, "x86-64-v3/hygongenuine-24-1/"},
      {"a virtual machine without AVX", "GenuineIntel", 6, 85,
       "cx8 cmov mmx fxsr sse sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm hypervisor",
       "x86-64-v2/intel-6-85/"},
      {"the oldest", "GenuineIntel", 15, 4, "cx8 cmov mmx fxsr sse sse2", "x86-64/intel-15-4/"},
  };
  return machines;
}

std::string CpuInfo(const Machine& machine, int processors) {
  std::string text;
  for (int i = 0; i < processors; ++i) {
    text += fmt::format(
        "processor\t: {}\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\n"
        "stepping\t: 4\nmicrocode\t: 0x2006e05\ncpu MHz\t\t: 2{}99.998\ncache size\t: 33792 KB\n"
        "core id\t\t: {}\nflags\t\t: {}\nbugs\t\t: mds\nbogomips\t: 4999.99\n"
        "address sizes\t: 46 bits physical, 48 bits virtual\npower management:\n\n",
        i, machine.vendor, machine.family, machine.model, machine.name, i % 10, i, machine.flags);
  }
  return text;
}

std::string ClassOf(const std::string& text) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(text);
  EXPECT_TRUE(cpu.ok()) << cpu.status();
  return cpu.ok() ? CpuClassOf(*cpu) : "";
}

TEST(Machines, HaveTheExpectedClass) {
  for (const Machine& machine : X86Machines()) {
    const std::string cpu_class = ClassOf(CpuInfo(machine, 4));
    EXPECT_TRUE(cpu_class.starts_with(machine.expected)) << machine.name << ": " << cpu_class;
    EXPECT_TRUE(IsCpuClass(cpu_class)) << cpu_class;
  }
}

TEST(Machines, HaveDistinctClasses) {
  std::set<std::string> classes;
  for (const Machine& machine : X86Machines()) {
    classes.insert(ClassOf(CpuInfo(machine, 2)));
  }
  EXPECT_EQ(classes.size(), X86Machines().size());
}

TEST(Machines, IgnoreFrequencyCoreAndMicrocode) {
  const Machine& machine = X86Machines().front();
  std::string other = CpuInfo(machine, 1);
  other.replace(other.find("0x2006e05"), 9, "0x2007006");
  EXPECT_EQ(ClassOf(CpuInfo(machine, 64)), ClassOf(other));
}

TEST(Machines, ChangeClassIfAHypervisorHidesAvx512) {
  Machine hidden = X86Machines()[4];
  std::string flags;
  std::string_view rest = hidden.flags;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (!rest.substr(0, end).starts_with("avx512")) {
      flags += fmt::format("{} ", rest.substr(0, end));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  hidden.flags = flags.c_str();
  EXPECT_TRUE(ClassOf(CpuInfo(hidden, 1)).starts_with("x86-64-v3/amd-25-17/"));
  EXPECT_NE(ClassOf(CpuInfo(hidden, 1)), ClassOf(CpuInfo(X86Machines()[4], 1)));
}

TEST(Machines, KeepOnlyFlagsThatCompilersUse) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(CpuInfo(X86Machines()[2], 1));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  for (const char* flag : {"amx_tile", "amx_int8", "avx512_fp16", "avx_vnni", "gfni", "movbe"}) {
    EXPECT_THAT(cpu->flags, Contains(flag));
  }
  const absl::StatusOr<CpuFacts> old = ParseProcCpu(CpuInfo(X86Machines()[0], 1));
  ASSERT_TRUE(old.ok()) << old.status();
  for (const char* flag : {"hypervisor", "constant_tsc", "pcid", "smep", "erms", "fpu", "apic"}) {
    EXPECT_THAT(old->flags, Not(Contains(flag)));
  }
}

TEST(Machines, MergeTheProcessorsOfArmBoards) {
  const auto arm = [](const std::string& part, const std::string& features) {
    return fmt::format(
        "processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: {}\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {}\nCPU revision\t: 1\n\n",
        features, part);
  };
  const std::string n1 =
      "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop "
      "asimddp ssbs";
  const std::string v1 = n1 +
                         " jscvt fcma sha3 sm3 sm4 sha512 sve asimdfhm dit uscat ilrcpc flagm "
                         "paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng";
  EXPECT_TRUE(ClassOf(arm("0xd0c", n1)).starts_with("aarch64/0x41-0xd0c/"));
  EXPECT_TRUE(ClassOf(arm("0xd40", v1)).starts_with("aarch64-sve/0x41-0xd40/"));
  EXPECT_TRUE(ClassOf(arm("0xd4f", v1 + " sve2")).starts_with("aarch64-sve2/0x41-0xd4f/"));
  // Grace beside a smaller core: both are named and only shared flags count, in either order.
  const std::string mixed = ClassOf(arm("0xd4f", v1 + " sve2") + arm("0xd0c", n1));
  EXPECT_TRUE(mixed.starts_with("aarch64/0x41-0xd0c+0xd4f/")) << mixed;
  EXPECT_EQ(mixed, ClassOf(arm("0xd0c", n1) + arm("0xd4f", v1 + " sve2")));
}

}  // namespace
}  // namespace cachewarm::fingerprint
