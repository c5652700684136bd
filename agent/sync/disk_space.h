// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cachewarm::agent {

// An amount of disk space.
struct DiskAmount {
  int64_t bytes = 0;
  int64_t inodes = 0;
  friend bool operator==(const DiskAmount&, const DiskAmount&) = default;
};

DiskAmount operator+(const DiskAmount& a, const DiskAmount& b);
// Returns the larger bytes and the larger inodes.
DiskAmount Max(const DiskAmount& a, const DiskAmount& b);
// True if neither part is positive.
bool IsNone(const DiskAmount& amount);

// Space for caches on the disk of the root directory.
struct DiskLimits {
  int64_t limit_bytes = 0;  // byteLimit: maximum bytes of all trees together; 0: no limit
  int64_t used_bytes = 0;   // bytes of all trees, plus expected bytes of running fetches
  int64_t free_bytes = INT64_MAX;
  int64_t free_inodes = INT64_MAX;  // INT64_MAX: the file system has no fixed number
  DiskAmount reserve;               // must stay free
};

// Shares of the file system, in percent.
struct DiskShares {
  int limit = 0;           // maximum of all trees together; 0: no limit
  int reserve_bytes = 0;   // must stay free, and at least 1 GiB; 0: 64 MiB
  int reserve_inodes = 0;  // must stay free
};

// Returns the amount that must stay free on a file system of this size. Zero inodes: the file
// system has no fixed number.
DiskAmount ReserveOf(const DiskShares& shares, const DiskAmount& size);

// Returns what must be removed so that `need` fits. For a need of zero: so that the limits hold.
DiskAmount Lacking(const DiskLimits& disk, const DiskAmount& need);

struct SpaceRefusal {
  std::string_view reason;  // reason::kOverLimit or kDiskFull
  std::string message;      // used, limit and remedy, for users
};

// Returns why `need` does not fit; nullopt if it does.
std::optional<SpaceRefusal> CheckSpace(const DiskLimits& disk, const DiskAmount& need);

}  // namespace cachewarm::agent
