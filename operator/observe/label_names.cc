// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/label_names.h"

#include <algorithm>

namespace cachewarm::observe {

void LabelNames::Share(api::Labels& labels) {
  std::lock_guard lock(mutex_);
  if (std::any_of(known_.begin(), known_.end(),
                  [&](const api::Labels& known) { return labels.ShareNames(known); })) {
    return;
  }
  if (known_.size() < kSetsMax) {
    known_.push_back(labels);
    return;
  }
  known_[oldest_] = labels;
  oldest_ = (oldest_ + 1) % kSetsMax;
}

}  // namespace cachewarm::observe
