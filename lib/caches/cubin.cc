// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "lib/caches/elf.h"
#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

constexpr uint16_t kCudaMachine = 190;  // EM_CUDA
// Observed in files of nvcc and ptxas 12.9 and 13.x: the architecture is the low byte of e_flags
// with OSABI 51, and the second byte with OSABI 65. The bit for the suffix "a" (sm_90a) also
// depends on the OSABI. Version 13.x does not set that bit, so CubinArchitecture() may return its
// cubins without the suffix.
constexpr uint8_t kOldAbi = 51;
constexpr uint8_t kNewAbi = 65;

}  // namespace

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
