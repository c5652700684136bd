// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cachewarm::sim {

// Returns the number of seeds of each simulation: SIM_SEEDS, else as many as a sanitizer build can
// run.
inline int Seeds() {
  constexpr int kUsual = 2;
  const char* const asked = std::getenv("SIM_SEEDS");
  const std::string_view text = asked == nullptr ? "" : asked;
  int seeds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seeds);
  return seeds > 0 ? seeds : kUsual;
}

}  // namespace cachewarm::sim
