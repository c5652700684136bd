// SPDX-License-Identifier: Apache-2.0
#include "lib/base/random.h"

#include <memory>
#include <mutex>
#include <random>

namespace cachewarm {
namespace {

struct Generator {
  std::mutex mutex;
  std::mt19937_64 engine{std::random_device{}()};
};

}  // namespace

Random SystemRandom() {
  return [generator = std::make_shared<Generator>()] {
    std::lock_guard lock(generator->mutex);
    return std::uniform_real_distribution<double>()(generator->engine);
  };
}

}  // namespace cachewarm
