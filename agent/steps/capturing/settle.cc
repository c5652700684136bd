// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/settle.h"

#include <algorithm>

namespace cachewarm::agent {

SettleSample SampleOf(const std::vector<capture::TreeFile>& files) {
  SettleSample sample;
  for (const capture::TreeFile& file : files) {
    ++sample.files;
    sample.bytes += file.stat.bytes;
    sample.newest_mtime_ns = std::max(sample.newest_mtime_ns, file.stat.mtime_ns);
  }
  return sample;
}

bool Settle::Observe(const SettleSample& sample, MonoTime now, Duration quiet) {
  if (!has_sample_ || sample != last_) {
    has_sample_ = true;
    last_ = sample;
    since_ = now;
  }
  return sample.files > 0 && now - since_ >= quiet;
}

}  // namespace cachewarm::agent
