// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "lib/api/labels.h"

namespace cachewarm::observe {

// Shares one copy of the label names among nodes with the same set of names, e.g. the nodes of a
// pool. Keeps at most kSetsMax sets, replacing the oldest. Thread-safe.
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
