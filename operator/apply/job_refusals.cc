// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/job_refusals.h"

#include <utility>

namespace cachewarm::apply {

void JobRefusals::Record(const std::string& warmup_uid, const std::string& job,
                         std::string message) {
  std::lock_guard lock(mutex_);
  messages_[warmup_uid][job] = std::move(message);
}

void JobRefusals::Forget(const std::string& warmup_uid, const std::string& job) {
  std::lock_guard lock(mutex_);
  const auto own = messages_.find(warmup_uid);
  if (own != messages_.end() && own->second.erase(job) > 0 && own->second.empty()) {
    messages_.erase(own);
  }
}

void JobRefusals::KeepOnly(const std::string& warmup_uid, const std::set<std::string>& jobs) {
  std::lock_guard lock(mutex_);
  const auto own = messages_.find(warmup_uid);
  if (own == messages_.end()) {
    return;
  }
  std::erase_if(own->second, [&](const auto& each) { return !jobs.contains(each.first); });
  if (own->second.empty()) {
    messages_.erase(own);
  }
}

std::vector<model::BuilderJob> JobRefusals::Of(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  std::vector<model::BuilderJob> jobs;
  if (const auto own = messages_.find(warmup_uid); own != messages_.end()) {
    for (const auto& [job, message] : own->second) {
      jobs.push_back({.name = job, .refused = true, .message = message});
    }
  }
  return jobs;
}

}  // namespace cachewarm::apply
