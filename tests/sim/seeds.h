// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cachewarm::sim {

// How many seeds each simulation runs with: SIM_SEEDS, else as many as every build has time for
// under sanitizers.
inline int Seeds() {
  constexpr int kUsual = 2;
  const char* const asked = std::getenv("SIM_SEEDS");
  const std::string_view text = asked == nullptr ? "" : asked;
  int seeds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seeds);
  return seeds > 0 ? seeds : kUsual;
}

}  // namespace cachewarm::sim
