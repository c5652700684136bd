// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace cachewarm {

// Randomness as an argument: each call gives a number in [0, 1). Must be callable from any thread.
using Random = std::function<double()>;

// Seeded from the operating system; thread-safe.
Random SystemRandom();

}  // namespace cachewarm
