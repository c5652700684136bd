// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::fingerprint {

// What decides which machine code `-march=native` makes. `flags` holds only names of the fixed
// list of its architecture (NativeFlags), sorted, each once.
struct CpuFacts {
  std::string architecture;  // "x86_64" or "aarch64"
  std::string vendor;        // "amd", "intel", else as the kernel writes it; aarch64: "0x41"
  std::string family;        // decimal; aarch64: empty
  std::string model;         // decimal; aarch64: the part, "0xd4f"
  std::vector<std::string> flags;

  friend bool operator==(const CpuFacts&, const CpuFacts&) = default;
};

// Reads the text of /proc/cpuinfo (at most 16 MiB). Where the processors of one machine differ,
// flags are those that all of them have, and vendor, family and model name each kind once,
// joined by "+" in sorted order. INVALID_ARGUMENT when it is neither x86-64 nor aarch64.
absl::StatusOr<CpuFacts> ParseProcCpu(std::string_view text);

// The instruction-set flags that enter a CPU class, by their names in /proc/cpuinfo, sorted:
// every extension that GCC 12 to 15 or clang 14 to 20 may emit or define a macro for under
// -march=native. Features of the kernel, of power and of virtual machines are not in it: they
// change no code and differ between hypervisors. Empty for an unknown architecture.
const std::vector<std::string_view>& NativeFlags(std::string_view architecture);

// Checks `facts` and drops flags that are not in the list; sorts the rest. INVALID_ARGUMENT names
// the field.
absl::StatusOr<CpuFacts> NormaliseCpu(CpuFacts facts);

// The CPU class: "<level>/<vendor>-<family>-<model>/<hash8>", for example
// "x86-64-v4/amd-25-17/5c0d9f21" or "aarch64-sve/0x41-0xd40/77aa01be". The level is for people
// (x86-64 psABI levels); the 8 hex digits are of the SHA-256 over all fields, so equal ids mean
// equal facts. `facts` must be normalised.
std::string CpuClassOf(const CpuFacts& facts);

// True for any text that CpuClassOf can return.
bool IsCpuClass(std::string_view text);

}  // namespace cachewarm::fingerprint
