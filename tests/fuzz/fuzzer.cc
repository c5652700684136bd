// SPDX-License-Identifier: Apache-2.0
// Entry point for libFuzzer: cachewarm-fuzz --target=NAME [flags of libFuzzer] CORPUS...
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const cachewarm::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    for (const auto& target : cachewarm::fuzz::AllTargets()) {
      if (argument.starts_with(kFlag) && argument.substr(kFlag.size()) == target.name) {
        chosen = &target;
      }
    }
  }
  if (chosen == nullptr) {
    std::cerr << "--target= names none of:";
    for (const auto& target : cachewarm::fuzz::AllTargets()) {
      std::cerr << ' ' << target.name;
    }
    std::cerr << '\n';
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  chosen->run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
