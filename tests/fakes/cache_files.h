// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace cachewarm {

// The smallest ELF64 shared object that counts as complete: a header, `payload`, a section table.
inline std::string SharedObject(const std::string& payload) {
  constexpr size_t kHeader = 64;
  constexpr size_t kSection = 64;
  std::string bytes(kHeader, '\0');
  std::memcpy(bytes.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  const auto put = [&bytes](size_t at, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      bytes[at + i] = static_cast<char>(value >> (8 * i));
    }
  };
  put(16, 3, 2);                         // e_type: ET_DYN
  put(18, 62, 2);                        // e_machine: x86-64
  put(20, 1, 4);                         // e_version
  put(40, kHeader + payload.size(), 8);  // e_shoff
  put(52, kHeader, 2);                   // e_ehsize
  put(58, kSection, 2);                  // e_shentsize
  put(60, 1, 2);                         // e_shnum
  return bytes + payload + std::string(kSection, '\0');
}

// File names in the form that Inductor uses.
inline const std::string kIndexFile = "inductor/fxgraph/ab/fabc/entry1";
inline const std::string kAutogradFile = "inductor/aotautograd/aabc/entry2";
inline const std::string kObjectFile = "inductor/cd/cabc.main.so";
inline const std::string kSourceFile = "inductor/cd/cabc.main.cpp";
inline const std::string kOutputFile = "inductor/cd/cout.py";
inline const std::string kLockFile = "inductor/locks/cabc.lock";

}  // namespace cachewarm
