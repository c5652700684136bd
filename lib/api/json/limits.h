// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Limits that other directories, or several tables, use. tests/unit/lib/api/fields_test.cc compares
// the tables with crds/*.yaml.
namespace cachewarm::api::json {

inline constexpr size_t kMessageBytes = 1024;
inline constexpr size_t kNameBytes = 253;
inline constexpr size_t kLabelBytes = 63;
inline constexpr size_t kGroupBytes = 512;  // a pod group's name with its kind
inline constexpr size_t kUidBytes = 64;
inline constexpr size_t kGpuTypeBytes = 253;
inline constexpr size_t kGlobBytes = 256;

inline constexpr size_t kConditionsMax = 16;
inline constexpr size_t kCachesMax = 32;
inline constexpr size_t kIncludesMax = 32;
inline constexpr size_t kKeysMax = 64;

inline constexpr size_t kOfferedDevicesMax = 16;
inline constexpr size_t kPublishedDevicesMax = 16;
inline constexpr size_t kDeviceAttributeBytes = 64;
inline constexpr size_t kNodeWarmupsMax = 256;
inline constexpr size_t kRunAsMax = 8;
inline constexpr size_t kNodeBundlesMax = 16;
inline constexpr size_t kCapturesMax = 16;
inline constexpr size_t kStartsMax = 64;
inline constexpr size_t kDifferingKeyFactorsMax = 8;
inline constexpr size_t kDifferingKeyFactorBytes = 128;
inline constexpr size_t kEvictionsMax = 128;
inline constexpr int kLateEntriesMax = 1'000'000;
inline constexpr size_t kLateReportsMax = 64;
inline constexpr size_t kLeftBehindDirectoriesMax = 8;
inline constexpr size_t kLeftBehindNameBytes = 128;

inline constexpr int kSecondsMax = 86'400;
inline constexpr int kSettleSecondsMax = 600;
inline constexpr int kHoldSecondsMax = 3'600;
inline constexpr int kDevicesMax = 1'024;
inline constexpr int kCountMax = 1'000'000'000;

}  // namespace cachewarm::api::json
