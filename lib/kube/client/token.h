// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/client/config.h"

namespace cachewarm::kube {

// The bearer token of a ClusterConfig. kubelet rotates the token file before the token expires, so
// the file is read again when the last reading is older than 60 s, and at once when the server
// rejects the token. If the file cannot be read, the last good token stays in use. Thread-safe.
class TokenSource {
 public:
  TokenSource(const ClusterConfig& config, const Clock& clock);

  // Returns the token; empty if the config has none.
  std::string Token();
  // Call when the server answers 401 to `token`: reads the file again. Returns true if Token() now
  // returns another token, with which the request can be repeated.
  bool Reload(const std::string& token);

 private:
  void Read();

  const std::string path_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;
  MonoTime read_at_{};
};

}  // namespace cachewarm::kube
