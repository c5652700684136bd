// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"

namespace cachewarm::apply {

// Name of the Secret and of its entry. The chart creates the Secret without the entry.
inline constexpr std::string_view kSaltSecret = "cachewarm-salt";
inline constexpr std::string_view kSaltEntry = "salt";

// The salt of the hashes of arguments and variables (operator/factors): 32 random bytes in a Secret
// in the operator's namespace. A reader of CacheWarmups who lacks this Secret cannot find out a
// value by trying. Thread-safe.
class FactorSalt {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    Log& log;
    std::string ns;  // of the operator
  };

  // All references must outlive this object.
  explicit FactorSalt(Dependencies deps) : deps_(std::move(deps)) {}

  // Returns the salt. The first call reads it, and creates it if the Secret is empty. After an
  // error, returns "", logs a warning if the error is a new one, and tries again after a minute.
  std::string Get(std::stop_token stop);

 private:
  absl::StatusOr<std::string> ReadOrCreate(std::stop_token stop);

  Dependencies deps_;
  std::mutex mutex_;
  std::string salt_;
  std::optional<MonoTime> failed_;  // when the last attempt failed
  std::string logged_;              // the error that was logged last
};

}  // namespace cachewarm::apply
