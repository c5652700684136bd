// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::fingerprint {

// Properties of a processor that decide which machine code `-march=native` emits. `flags` holds
// only names that NativeFlags() returns, sorted, each once.
struct CpuFacts {
  std::string architecture;  // "x86_64" or "aarch64"
  std::string vendor;        // "amd", "intel" or as the kernel writes it; aarch64: "0x41"
  std::string family;        // decimal; aarch64: empty
  std::string model;         // decimal; aarch64: the "CPU part", "0xd4f"
  std::vector<std::string> flags;

  friend bool operator==(const CpuFacts&, const CpuFacts&) = default;
};

// Parses the text of /proc/cpuinfo (at most 16 MiB). If the processors of one machine differ,
// `flags` contains the flags that all of them have, and `vendor`, `family` and `model` list each
// value once, sorted and joined by "+". INVALID_ARGUMENT if the text describes neither x86-64 nor
// aarch64.
absl::StatusOr<CpuFacts> ParseProcCpu(std::string_view text);

// Returns the instruction-set flags that are part of a CPU class, sorted, with their names in
// /proc/cpuinfo. They cover every extension for which GCC 12 to 15 or clang 14 to 20 may emit code
// or define a macro under -march=native. Kernel, power and virtualization features are excluded,
// because they do not change code and differ between hypervisors. Empty for an unknown
// architecture.
const std::vector<std::string_view>& NativeFlags(std::string_view architecture);

// Validates `facts`, drops flags that NativeFlags() does not return and sorts the others.
// INVALID_ARGUMENT names the field.
absl::StatusOr<CpuFacts> NormaliseCpu(CpuFacts facts);

// Returns the CPU class "<level>/<vendor>-<family>-<model>/<hash8>", for example
// "x86-64-v4/amd-25-17/5c0d9f21" or "aarch64-sve/0x41-0xd40/77aa01be". The level (x86-64 psABI) is
// only for human readers. The hash is the first 8 hex digits of the SHA-256 over all fields, so
// nodes with the same class have the same facts. `facts` must be normalised.
std::string CpuClassOf(const CpuFacts& facts);

// True if the text has the form of a CPU class, as CpuClassOf() returns it.
bool IsCpuClass(std::string_view text);

}  // namespace cachewarm::fingerprint
