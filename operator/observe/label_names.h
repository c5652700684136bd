// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "lib/api/labels.h"

namespace cachewarm::observe {

// Nodes of a pool have labels of the same names: they are kept once for all of them, as long as no
// more than kSetsMax sets of names take turns. Thread-safe.
class LabelNames {
 public:
  static constexpr size_t kSetsMax = 64;

  void Share(api::Labels& labels);

 private:
  std::mutex mutex_;
  std::vector<api::Labels> known_;
  size_t oldest_ = 0;
};

}  // namespace cachewarm::observe
