// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/cpu_class.h"

#include <gmock/gmock.h>

#include "fmt/format.h"

namespace cachewarm::fingerprint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kV3[] =
    "fpu vme sse sse2 pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt avx f16c lahf_lm abm bmi1 "
    "avx2 bmi2 hypervisor";
constexpr char kV4[] = " avx512f avx512dq avx512cd avx512bw avx512vl";

std::string X86(const std::string& flags, const std::string& vendor = "GenuineIntel",
                const std::string& model = "85") {
  return fmt::format(
      "processor\t: 0\nvendor_id\t: {}\ncpu family\t: 6\nmodel\t\t: {}\nmodel name\t: Xeon: {}\n"
      "flags\t\t: {}\nbugs\t\t: spectre_v1\n\n",
      vendor, model, "\"Gold\"", flags);
}

std::string Arm(const std::string& part, const std::string& features) {
  return fmt::format(
      "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: {}\nCPU implementer\t: 0x41\n"
      "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: {}\n\n",
      features, part);
}

std::string ClassOf(const std::string& text) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(text);
  EXPECT_TRUE(cpu.ok()) << cpu.status();
  return cpu.ok() ? CpuClassOf(*cpu) : "";
}

TEST(NativeFlags, AreSortedAndUnique) {
  for (const char* architecture : {"x86_64", "aarch64"}) {
    const std::vector<std::string_view>& flags = NativeFlags(architecture);
    EXPECT_GT(flags.size(), 50U);
    EXPECT_TRUE(std::is_sorted(flags.begin(), flags.end())) << architecture;
    EXPECT_EQ(std::adjacent_find(flags.begin(), flags.end()), flags.end()) << architecture;
  }
  EXPECT_TRUE(NativeFlags("riscv64").empty());
}

TEST(ParseProcCpu, ReadsAnX86Processor) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(X86("avx2 avx fpu hypervisor sse2 avx"));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->architecture, "x86_64");
  EXPECT_EQ(cpu->vendor, "intel");
  EXPECT_EQ(cpu->family, "6");
  EXPECT_EQ(cpu->model, "85");
  EXPECT_THAT(cpu->flags, ElementsAre("avx", "avx2", "sse2"));
}

TEST(ParseProcCpu, ReadsAnAarch64Processor) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(Arm("0xd40", "fp asimd evtstrm sve cpuid"));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->architecture, "aarch64");
  EXPECT_EQ(cpu->vendor, "0x41");
  EXPECT_EQ(cpu->model, "0xd40");
  EXPECT_THAT(cpu->flags, ElementsAre("asimd", "fp", "sve"));
}

TEST(ParseProcCpu, KeepsOnlyFlagsOfAllProcessors) {
  const absl::StatusOr<CpuFacts> cpu = ParseProcCpu(
      Arm("0xd46", "fp asimd sve") + Arm("0xd46", "fp asimd sve") + Arm("0xd40", "fp asimd"));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->model, "0xd40+0xd46");
  EXPECT_THAT(cpu->flags, ElementsAre("asimd", "fp"));
}

TEST(ParseProcCpu, IgnoresTheNumberOfProcessors) {
  EXPECT_EQ(ClassOf(X86(kV3)), ClassOf(X86(kV3) + X86(kV3) + X86(kV3)));
}

TEST(ParseProcCpu, RefusesUnknownProcessors) {
  for (const std::string& text :
       {std::string(), std::string("\n\n"), std::string("processor : 0\nhart : 0\nisa : rv64gc\n"),
        std::string("no colon at all"), X86("avx") + Arm("0xd40", "sve"),
        std::string("flags : avx\n"), std::string((16U << 20U) + 1, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseProcCpu(text).status())) << text.substr(0, 60);
  }
  EXPECT_THAT(std::string(ParseProcCpu("").status().message()), HasSubstr("node facts file"));
}

TEST(ParseProcCpu, TruncatesLongNames) {
  const absl::StatusOr<CpuFacts> cpu =
      ParseProcCpu(X86("avx", std::string(5000, 'a') + "/../\xff", "8/5"));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->vendor.size(), 40U);
  EXPECT_EQ(cpu->model, "85");
  EXPECT_TRUE(IsCpuClass(CpuClassOf(*cpu)));
}

TEST(CpuClassOf, BeginsWithTheLevel) {
  EXPECT_THAT(ClassOf(X86("sse2")), StartsWith("x86-64/intel-6-85/"));
  EXPECT_THAT(ClassOf(X86("pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm")),
              StartsWith("x86-64-v2/"));
  EXPECT_THAT(ClassOf(X86(kV3)), StartsWith("x86-64-v3/"));
  EXPECT_THAT(ClassOf(X86(std::string(kV3) + kV4, "AuthenticAMD", "17")),
              StartsWith("x86-64-v4/amd-6-17/"));
  EXPECT_THAT(ClassOf(Arm("0xd0c", "fp asimd")), StartsWith("aarch64/0x41-0xd0c/"));
  EXPECT_THAT(ClassOf(Arm("0xd40", "fp sve")), StartsWith("aarch64-sve/"));
  EXPECT_THAT(ClassOf(Arm("0xd4f", "fp sve sve2")), StartsWith("aarch64-sve2/"));
}

TEST(CpuClassOf, StaysTheSameAcrossReleases) {
  // The class is part of every key: a change makes every node of every user compile again.
  EXPECT_EQ(CpuClassOf({.architecture = "x86_64",
                        .vendor = "amd",
                        .family = "25",
                        .model = "17",
                        .flags = {"avx", "avx2"}}),
            "x86-64/amd-25-17/482a5b79");
}

TEST(CpuClassOf, DiffersByEveryFactThatChangesCode) {
  const std::string base = X86(kV3);
  const std::string others[] = {X86(std::string(kV3) + " avx_vnni"), X86(kV3, "AuthenticAMD"),
                                X86(kV3, "GenuineIntel", "106"), X86(std::string(kV3) + kV4)};
  for (const std::string& other : others) {
    EXPECT_NE(ClassOf(base), ClassOf(other));
  }
}

TEST(CpuClassOf, IgnoresFactsThatDoNotChangeCode) {
  EXPECT_EQ(ClassOf(X86(kV3)), ClassOf(X86(std::string("aperfmperf ") + kV3 + " arch_perfmon")));
  EXPECT_EQ(ClassOf(X86("avx avx2")), ClassOf(X86("avx2 avx")));
}

TEST(NormaliseCpu, NamesTheInvalidField) {
  const CpuFacts good = {
      .architecture = "x86_64", .vendor = "intel", .family = "6", .model = "85", .flags = {}};
  CpuFacts cpu = good;
  cpu.architecture = "sparc";
  EXPECT_THAT(std::string(NormaliseCpu(cpu).status().message()), HasSubstr("cpu.architecture"));
  cpu = good;
  cpu.vendor = "///";
  EXPECT_THAT(std::string(NormaliseCpu(cpu).status().message()), HasSubstr("cpu.vendor"));
  cpu = good;
  cpu.model = "";
  EXPECT_THAT(std::string(NormaliseCpu(cpu).status().message()), HasSubstr("cpu.model"));
}

TEST(IsCpuClass, AcceptsOnlyCpuClasses) {
  for (const char* good : {"x86-64-v4/amd-25-17/5c0d9f21", "aarch64/0x41-0xd40+0xd46/00000000"}) {
    EXPECT_TRUE(IsCpuClass(good)) << good;
  }
  for (const char* bad : {"", "/", "//", "x86-64/amd", "x86-64/amd/5c0d9f2", "x86-64/amd/5c0d9f2g",
                          "x/y/z/5c0d9f21", "X86/amd/5c0d9f21", "x86/a b/5c0d9f21", "/amd/5c0d9f21",
                          "x86//5c0d9f21", "../x/5c0d9f21"}) {
    EXPECT_FALSE(IsCpuClass(bad)) << bad;
  }
  EXPECT_FALSE(IsCpuClass(std::string(200, 'a') + "/b/5c0d9f21"));
  const std::string longest = std::string(149, 'z') + "/9/5c0d9f21";
  EXPECT_TRUE(IsCpuClass(longest)) << longest.size();
  EXPECT_FALSE(IsCpuClass("0" + longest));
}

TEST(NormaliseCpu, KeepsLettersDigitsDotsAndPluses) {
  const auto cpu = NormaliseCpu({.architecture = "x86_64",
                                 .vendor = "azAZ/@[`{:",
                                 .family = "09.+-",
                                 .model = " 1 ",
                                 .flags = {}});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->vendor, "azaz");
  EXPECT_EQ(cpu->family, "09.+");
  EXPECT_EQ(cpu->model, "1");
}

}  // namespace
}  // namespace cachewarm::fingerprint
