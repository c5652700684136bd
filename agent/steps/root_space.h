// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "agent/steps/context.h"
#include "agent/steps/evicting/evictions.h"
#include "agent/sync/disk_space.h"
#include "lib/api/node_cache.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {

struct RootSpaceOptions {
  int64_t limit_bytes = 0;  // setting byteLimit; 0: DiskShares::limit
  DiskShares disk;
  Duration measure{};  // time between two measurements
  Duration retry{};    // the same while the root cannot be used (LoopOptions::idle)
};

// Measures the disk of the root directory, and checks that pods can use it. Call on the sync
// thread.
class RootSpace {
 public:
  // `context` must outlive this object.
  RootSpace(const Context& context, RootSpaceOptions options)
      : context_(context), options_(options) {}

  // Measures if it is time to, or if `force` is set because space was used or freed.
  void Measure(bool force);
  // Reports the root as unusable, for the reason `why`, until the next measurement.
  void SetUnusable(std::string why);

  // Returns the limits while all trees use `used_bytes`. Running fetches have reserved
  // `reserved`, which counts as used.
  DiskLimits Limits(int64_t used_bytes, const DiskAmount& reserved = {}) const;
  // Returns the status of the root, and sets its metrics.
  api::RootStatus Report(const Evictions& evictions) const;

 private:
  const Context& context_;
  const RootSpaceOptions options_;
  api::RootStatus status_;
  fs::Space space_;
  MonoTime measured_at_{};
};

}  // namespace cachewarm::agent
