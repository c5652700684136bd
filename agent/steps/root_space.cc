// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/root_space.h"

#include <utility>

#include "agent/tree/root.h"

namespace cachewarm::agent {

void RootSpace::Measure(bool force) {
  const MonoTime now = context_.clock.Monotonic();
  const Duration between = status_.writable ? options_.measure : options_.retry;
  if (!force && measured_at_ != MonoTime{} && now - measured_at_ < between) {
    return;
  }
  const absl::StatusOr<fs::Space> space = fs::MeasureSpace(context_.root);
  space_ = space.value_or(fs::Space());
  status_ = CheckRoot(context_.root, space);
  measured_at_ = now;
}

void RootSpace::SetUnusable(std::string why) {
  status_.writable = false;
  status_.message = std::move(why);
}

DiskLimits RootSpace::Limits(int64_t used_bytes, const DiskAmount& reserved) const {
  const int64_t free_inodes = space_.total_inodes > 0 ? space_.free_inodes : INT64_MAX;
  return {.limit_bytes = options_.limit_bytes > 0 ? options_.limit_bytes
                                                  : space_.total_bytes / 100 * options_.disk.limit,
          .used_bytes = used_bytes + reserved.bytes,
          .free_bytes = status_.free_bytes - reserved.bytes,
          .free_inodes = free_inodes - reserved.inodes,
          .reserve = ReserveOf(options_.disk,
                               {.bytes = space_.total_bytes, .inodes = space_.total_inodes})};
}

api::RootStatus RootSpace::Report(const Evictions& evictions) const {
  api::RootStatus status = status_;
  status.used_bytes = evictions.Total().bytes;
  status.limit_bytes = Limits(status.used_bytes).limit_bytes;
  status.evictable_bytes = evictions.evictable_bytes();
  status.evicted_bytes = evictions.evicted_bytes();
  context_.metrics.root_used_bytes.Set({}, static_cast<double>(status.used_bytes));
  context_.metrics.root_free_bytes.Set({}, static_cast<double>(status.free_bytes));
  context_.metrics.root_limit_bytes.Set({}, static_cast<double>(status.limit_bytes));
  context_.metrics.evictable_bytes.Set({}, static_cast<double>(status.evictable_bytes));
  return status;
}

}  // namespace cachewarm::agent
