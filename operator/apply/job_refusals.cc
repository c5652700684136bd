// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/job_refusals.h"

#include <utility>

namespace cachewarm::apply {

void JobRefusals::Note(const std::string& warmup_uid, const std::string& job, std::string words) {
  std::lock_guard lock(mutex_);
  words_[warmup_uid][job] = std::move(words);
}

void JobRefusals::Forget(const std::string& warmup_uid, const std::string& job) {
  std::lock_guard lock(mutex_);
  const auto own = words_.find(warmup_uid);
  if (own != words_.end() && own->second.erase(job) > 0 && own->second.empty()) {
    words_.erase(own);
  }
}

void JobRefusals::KeepOnly(const std::string& warmup_uid, const std::set<std::string>& jobs) {
  std::lock_guard lock(mutex_);
  const auto own = words_.find(warmup_uid);
  if (own == words_.end()) {
    return;
  }
  std::erase_if(own->second, [&](const auto& each) { return !jobs.contains(each.first); });
  if (own->second.empty()) {
    words_.erase(own);
  }
}

std::vector<plan::BuilderJob> JobRefusals::Of(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  std::vector<plan::BuilderJob> jobs;
  if (const auto own = words_.find(warmup_uid); own != words_.end()) {
    for (const auto& [job, words] : own->second) {
      jobs.push_back({.name = job, .refused = true, .message = words});
    }
  }
  return jobs;
}

}  // namespace cachewarm::apply
