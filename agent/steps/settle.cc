// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/settle.h"

namespace cachewarm::agent {

bool Settle::Observe(const SettleSample& sample, MonoTime now, Duration quiet) {
  if (!has_sample_ || sample != last_) {
    has_sample_ = true;
    last_ = sample;
    since_ = now;
  }
  return sample.files > 0 && now - since_ >= quiet;
}

}  // namespace cachewarm::agent
