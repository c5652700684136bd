// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/disk_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

constexpr int64_t kReserveBytesMin = int64_t{1} << 30;
constexpr int64_t kReserveBytesOff = int64_t{64} << 20;

int64_t Percent(int64_t size, int percent) {
  return size / 100 * percent;
}

}  // namespace

DiskAmount operator+(const DiskAmount& a, const DiskAmount& b) {
  return {.bytes = a.bytes + b.bytes, .inodes = a.inodes + b.inodes};
}

DiskAmount Max(const DiskAmount& a, const DiskAmount& b) {
  return {.bytes = std::max(a.bytes, b.bytes), .inodes = std::max(a.inodes, b.inodes)};
}

bool IsNone(const DiskAmount& amount) {
  return amount.bytes <= 0 && amount.inodes <= 0;
}

DiskAmount ReserveOf(const DiskShares& shares, const DiskAmount& size) {
  return {.bytes = shares.reserve_bytes == 0
                       ? kReserveBytesOff
                       : std::max(kReserveBytesMin, Percent(size.bytes, shares.reserve_bytes)),
          .inodes = Percent(size.inodes, shares.reserve_inodes)};
}

DiskAmount Lacking(const DiskLimits& disk, const DiskAmount& need) {
  const int64_t over =
      disk.limit_bytes > 0 ? disk.used_bytes + need.bytes - disk.limit_bytes : int64_t{0};
  return {.bytes = std::max({int64_t{0}, over, disk.reserve.bytes + need.bytes - disk.free_bytes}),
          .inodes = std::max(int64_t{0}, disk.reserve.inodes + need.inodes - disk.free_inodes)};
}

std::optional<SpaceRefusal> CheckSpace(const DiskLimits& disk, const DiskAmount& need) {
  if (disk.limit_bytes > 0 && disk.used_bytes + need.bytes > disk.limit_bytes) {
    return SpaceRefusal{.reason = api::reason::kOverLimit,
                        .message = fmt::format(
                            "{} bytes needed, {} in use, byteLimit is {}: raise byteLimit in the "
                            "agent's configuration, lower spec.retain or delete CacheWarmups; "
                            "trees are removed once no running pod can have them mounted",
                            need.bytes, disk.used_bytes, disk.limit_bytes)};
  }
  if (need.bytes > disk.free_bytes - disk.reserve.bytes) {
    return SpaceRefusal{
        .reason = api::reason::kDiskFull,
        .message = fmt::format("{} bytes needed and {} bytes of reserve, {} bytes free, {} used by "
                               "caches: delete files on the disk of the agent's root directory "
                               "(--root) or lower reserve.bytesPercent",
                               need.bytes, disk.reserve.bytes, disk.free_bytes, disk.used_bytes)};
  }
  if (need.inodes > disk.free_inodes - disk.reserve.inodes) {
    return SpaceRefusal{
        .reason = api::reason::kDiskFull,
        .message = fmt::format("{} inodes needed and {} of reserve, {} free: delete files on the "
                               "disk of the agent's root directory (--root) or lower "
                               "reserve.inodesPercent",
                               need.inodes, disk.reserve.inodes, disk.free_inodes)};
  }
  return std::nullopt;
}

}  // namespace cachewarm::agent
