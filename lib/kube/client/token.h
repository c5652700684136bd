// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/client/config.h"

namespace cachewarm::kube {

// The bearer token of a ClusterConfig. kubelet rotates the file before the token expires: a token
// older than 60 s is read again, and a refused one at once. A file that cannot be read leaves the
// last good token in use. Thread-safe.
class TokenSource {
 public:
  TokenSource(const ClusterConfig& config, const Clock& clock);

  // Returns the token; empty if the config has none.
  std::string Token();
  // Reports that the server answered 401 to `token`. Returns true if another token is available.
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
