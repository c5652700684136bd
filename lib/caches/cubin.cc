// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/caches/elf.h"
#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

constexpr uint16_t kCudaMachine = 190;  // EM_CUDA
// Observed in files of nvcc and ptxas 12.9 and 13.x: the architecture is the low byte of e_flags
// with OSABI 51, and the second byte with OSABI 65. The bit for the suffix "a" (sm_90a) also
// depends on the OSABI. Version 13.x does not set that bit: FindGpuCode() reads the suffix from a
// note.
constexpr uint8_t kOldAbi = 51;
constexpr uint8_t kNewAbi = 65;

constexpr uint16_t kAmdMachine = 224;  // EM_AMDGPU
constexpr uint32_t kAmdArchitectureMask = 0xFF;

// Values of LLVM's constants EF_AMDGPU_MACH_AMDGCN_... (User Guide for AMDGPU Backend, "ELF
// e_flags").
constexpr std::pair<uint32_t, std::string_view> kAmdArchitectures[] = {
    {0x2C, "gfx900"},  {0x2F, "gfx906"},  {0x30, "gfx908"},  {0x33, "gfx1010"}, {0x36, "gfx1030"},
    {0x3F, "gfx90a"},  {0x40, "gfx940"},  {0x41, "gfx1100"}, {0x43, "gfx1150"}, {0x46, "gfx1101"},
    {0x47, "gfx1102"}, {0x48, "gfx1200"}, {0x49, "gfx1250"}, {0x4B, "gfx941"},  {0x4C, "gfx942"},
    {0x4E, "gfx1201"}, {0x4F, "gfx950"},
};

}  // namespace

std::optional<std::string> HsacoArchitecture(std::string_view head) {
  const std::optional<ElfHeader> elf = ParseElfHeader(head);
  if (!elf.has_value() || elf->machine != kAmdMachine) {
    return std::nullopt;
  }
  for (const auto& [flags, name] : kAmdArchitectures) {
    if (flags == (elf->flags & kAmdArchitectureMask)) {
      return std::string(name);
    }
  }
  return std::nullopt;
}

std::optional<std::string> PtxArchitecture(std::string_view head) {
  constexpr std::string_view kTarget = "\n.target sm_";
  const size_t at = head.find(kTarget);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = head.substr(at + kTarget.size());
  size_t length = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (length < 2 || length > 4 || length == rest.size()) {
    return std::nullopt;
  }
  length += rest[length] == 'a' || rest[length] == 'f' ? 1U : 0U;
  const bool ends = length == rest.size() || rest[length] == '\n' || rest[length] == ',' ||
                    rest[length] == ' ' || rest[length] == '\r';
  return ends ? std::optional(fmt::format("compute_{}", rest.substr(0, length))) : std::nullopt;
}

std::optional<std::string> CubinArchitecture(std::string_view head) {
  const std::optional<ElfHeader> elf = ParseElfHeader(head);
  if (!elf.has_value() || elf->machine != kCudaMachine) {
    return std::nullopt;
  }
  const bool old_abi = elf->os_abi == kOldAbi;
  if (!old_abi && elf->os_abi != kNewAbi) {
    return std::nullopt;
  }
  const uint32_t sm = (old_abi ? elf->flags : elf->flags >> 8U) & 0xFFU;
  const bool specific = (elf->flags & (old_abi ? 0x800U : 0x8U)) != 0;
  return sm == 0 ? std::nullopt
                 : std::optional<std::string>(fmt::format("sm_{}{}", sm, specific ? "a" : ""));
}

}  // namespace cachewarm::caches
