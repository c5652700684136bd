// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace cachewarm {

// Returns a number in [0, 1) per call. Must be callable from any thread.
using Random = std::function<double()>;

// Returns a generator seeded by the operating system. Thread-safe.
Random SystemRandom();

}  // namespace cachewarm
