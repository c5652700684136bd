// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/placement.h"

namespace cachewarm::caches {

std::string_view SkipName(Skip skip) {
  switch (skip) {
    case Skip::kNo:
      return "carried";
    case Skip::kUnknownCache:
      return "below no known cache";
    case Skip::kNotAllowed:
      return "not on the allow list";
    case Skip::kLock:
      return "lock";
    case Skip::kTemporary:
      return "temporary";
    case Skip::kLog:
      return "log";
    case Skip::kPrivate:
      return "private";
    case Skip::kColdMeasurement:
      return "measured during a cold start";
    case Skip::kUnsafePath:
      return "unsafe path";
  }
  return "unsafe path";
}

}  // namespace cachewarm::caches
