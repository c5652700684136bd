// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"

namespace cachewarm::apply {

// Name of the Secret and of its entry. The chart creates the Secret without the entry.
inline constexpr std::string_view kSaltSecret = "cachewarm-salt";
inline constexpr std::string_view kSaltEntry = "salt";
// The Secret of the agents, created and filled in the same way.
inline constexpr std::string_view kEngineSaltSecret = "cachewarm-engine-salt";

// The salt of the hashes of arguments and variables (operator/factors): 32 random bytes in a Secret
// in the operator's namespace. A reader of CacheWarmups who lacks this Secret cannot find out a
// value by trying.
//
// Every node has the Secret of the agents, because a kubelet may read each Secret that one of its
// pods mounts. Its salt is therefore only derived from this one (DeriveEngineSalt()): it verifies
// no hash of a CacheWarmup. Thread-safe.
class FactorSalt {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    Log& log;
    std::string ns;  // of the operator
  };

  static constexpr Duration kEngineSaltCheck{600'000};

  // All references must outlive this object.
  explicit FactorSalt(Dependencies deps) : deps_(std::move(deps)) {}

  // Returns the salt. The first call reads it, creates it if the Secret is empty, and stores the
  // derived salt for the agents. Reads the Secret of the agents again after kEngineSaltCheck, and
  // fills it if it was deleted and created without the salt. After an error, logs a warning if the
  // error is a new one, and tries again after a minute. Until the salt is known, returns "".
  std::string Get(std::stop_token stop);

 private:
  struct Attempt {
    bool done = false;           // the last one succeeded
    std::optional<MonoTime> at;  // when the last one ended
    std::string logged;          // the error that was logged last
  };

  // Returns true if there was no attempt, or the last one is so long ago that it has to be repeated
  // after an error or, if it succeeded, after `check`.
  bool IsDue(const Attempt& attempt, std::optional<Duration> check) const;
  void Record(Attempt& attempt, const absl::Status& status, std::string_view consequence,
              std::string_view secret);
  absl::StatusOr<std::string> ReadOrCreate(std::stop_token stop);
  absl::Status StoreEngineSalt(std::stop_token stop);
  absl::StatusOr<codec::Json> Read(std::string_view secret, std::stop_token stop);
  absl::Status Write(codec::Json secret, std::string_view salt, std::stop_token stop);

  Dependencies deps_;
  std::mutex mutex_;
  std::string salt_;
  Attempt own_;
  Attempt engine_;
};

// Returns the salt of the agents: HMAC-SHA-256 of "engine" under the salt, 64 hex digits. Pure.
std::string DeriveEngineSalt(std::string_view salt);

}  // namespace cachewarm::apply
