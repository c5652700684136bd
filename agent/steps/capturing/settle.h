// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/clock.h"
#include "lib/capture/tree_listing.h"

namespace cachewarm::agent {

// Summary of the allow-listed files of a tree. Any write to these files changes the summary.
struct SettleSample {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t newest_mtime_ns = 0;
  friend bool operator==(const SettleSample&, const SettleSample&) = default;
};

SettleSample SampleOf(const std::vector<capture::TreeFile>& files);

// Detects that an engine has stopped writing: at least one file exists, and number, bytes and
// newest mtime of the files have not changed for some time. Pure. Call on one thread.
class Settle {
 public:
  // Adds a sample, taken at `now`. Returns true if it has files and all samples have been equal to
  // it for at least `quiet`.
  bool Observe(const SettleSample& sample, MonoTime now, Duration quiet);
  // Drops all samples; the quiet time begins again with the next sample.
  void Restart() { has_sample_ = false; }

 private:
  bool has_sample_ = false;
  SettleSample last_;
  MonoTime since_{};
};

}  // namespace cachewarm::agent
