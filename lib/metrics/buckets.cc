// SPDX-License-Identifier: Apache-2.0
#include "lib/metrics/metrics.h"

namespace cachewarm::metrics {

std::vector<double> SecondsBuckets() {
  return {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 300, 600, 1800};
}

std::vector<double> BytesBuckets() {
  std::vector<double> buckets;
  for (double bytes = 65'536; bytes <= 17'179'869'184.0; bytes *= 4) {
    buckets.push_back(bytes);
  }
  return buckets;
}

}  // namespace cachewarm::metrics
