// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/release_refusals.h"

#include <utility>

namespace cachewarm::apply {

void ReleaseRefusals::Record(const std::string& ns, std::string message) {
  bool is_new = false;
  {
    std::lock_guard lock(mutex_);
    const WallTime now = clock_.Now();
    std::erase_if(refusals_, [&](const auto& each) {
      return now - each.second.time >= model::kReleaseRefusalLasts;
    });
    is_new = !refusals_.contains(ns);
    refusals_[ns] = {.time = now, .message = std::move(message)};
  }
  if (is_new) {
    on_change_(ns);
  }
}

void ReleaseRefusals::Forget(const std::string& ns) {
  bool had = false;
  {
    std::lock_guard lock(mutex_);
    had = refusals_.erase(ns) > 0;
  }
  if (had) {
    on_change_(ns);
  }
}

model::ReleaseRefusal ReleaseRefusals::Of(const std::string& ns) const {
  std::lock_guard lock(mutex_);
  const auto found = refusals_.find(ns);
  return found == refusals_.end() ? model::ReleaseRefusal{} : found->second;
}

}  // namespace cachewarm::apply
