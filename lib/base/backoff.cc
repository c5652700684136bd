// SPDX-License-Identifier: Apache-2.0
#include "lib/base/backoff.h"

#include <algorithm>
#include <cmath>

namespace cachewarm {

Duration BackoffDelay(const BackoffPolicy& policy, int attempt, double random) {
  const double most = static_cast<double>(policy.most.count());
  // Limit the exponent to keep pow finite: 64 doublings already exceed any sensible delay.
  const double grown = static_cast<double>(policy.first.count()) *
                       std::pow(policy.factor, std::clamp(attempt, 0, 64));
  const double spread = std::min(grown, most) * (1.0 - policy.jitter * random);
  return Duration(static_cast<int64_t>(spread));
}

}  // namespace cachewarm
