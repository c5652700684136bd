// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/token.h"

#include "lib/kube/client/small_file.h"

namespace cachewarm::kube {
namespace {

constexpr Duration kMaxAge = std::chrono::seconds(60);

}  // namespace

TokenSource::TokenSource(const ClusterConfig& config, const Clock& clock)
    : path_(config.token_file), clock_(clock), token_(config.token) {
  if (!path_.empty()) {
    Read();
  }
}

std::string TokenSource::Token() {
  std::lock_guard lock(mutex_);
  if (!path_.empty() && clock_.Monotonic() - read_at_ >= kMaxAge) {
    Read();
  }
  return token_;
}

bool TokenSource::Reload(const std::string& token) {
  std::lock_guard lock(mutex_);
  if (!path_.empty() && token_ == token) {
    Read();
  }
  return token_ != token;
}

void TokenSource::Read() {
  read_at_ = clock_.Monotonic();
  if (absl::StatusOr<std::string> token = ReadSmallFile(path_); token.ok() && !token->empty()) {
    token_ = *std::move(token);
  }
}

}  // namespace cachewarm::kube
