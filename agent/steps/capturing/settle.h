// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/clock.h"
#include "lib/capture/tree_listing.h"

namespace cachewarm::agent {

// The allow-listed files of a tree, as far as quiet is concerned.
struct SettleSample {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t newest_mtime_ns = 0;
  friend bool operator==(const SettleSample&, const SettleSample&) = default;
};

SettleSample SampleOf(const std::vector<capture::TreeFile>& files);

// Tells when an engine has stopped writing: at least one file, and count, bytes and newest mtime
// the same for a while. Pure; one thread.
class Settle {
 public:
  // True when every sample of the last `quiet` was equal to this one.
  bool Observe(const SettleSample& sample, MonoTime now, Duration quiet);
  // Forgets: the quiet time starts anew with the next sample.
  void Restart() { has_sample_ = false; }

 private:
  bool has_sample_ = false;
  SettleSample last_;
  MonoTime since_{};
};

}  // namespace cachewarm::agent
