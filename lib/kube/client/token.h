// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/client/config.h"

namespace cachewarm::kube {

// The bearer token of a ClusterConfig. kubelet rotates the file before the token expires; a token
// older than 60 s is read again, and one that the server refused at once. A file that cannot be
// read leaves the last good token. Thread-safe.
class TokenSource {
 public:
  TokenSource(const ClusterConfig& config, const Clock& clock);

  // Empty when the config has none.
  std::string Token();
  // The server answered 401 to `token`. True when there is another one to try now.
  bool Refused(const std::string& token);

 private:
  void Read();

  const std::string path_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;
  MonoTime read_at_{};
};

}  // namespace cachewarm::kube
