// SPDX-License-Identifier: Apache-2.0
#include "cli/run/schedule.h"

#include <algorithm>

#include "lib/base/backoff.h"

namespace cachewarm::cli {
namespace {

constexpr Duration kBetweenPublications{10 * 60'000};
constexpr BackoffPolicy kAfterFailure{
    .first = Duration(60'000), .most = Duration(3'600'000), .jitter = 0};

}  // namespace

PublishSchedule::PublishSchedule(const ReadyRules& rules, double random)
    : rules_(rules),
      delay_(static_cast<int64_t>(static_cast<double>(rules.quiet.count()) * random)) {}

bool PublishSchedule::IsReady() const {
  return (!rules_.by_url || url_answered_) && (!rules_.by_log || log_matched_);
}

bool PublishSchedule::Observe(const TreeSnapshot& tree, MonoTime now) {
  if (!has_tree_ || tree != tree_) {
    has_tree_ = true;
    tree_ = tree;
    changed_ = now;
  }
  if (IsReady() && !was_ready_) {
    was_ready_ = true;
    ready_ = now;
  }
  return was_ready_ && !tree.empty() && tree != published_ && now >= not_before_ &&
         now >= std::max(changed_ + rules_.quiet, ready_) + delay_;
}

void PublishSchedule::Published(const TreeSnapshot& tree, MonoTime now) {
  published_ = tree;
  not_before_ = now + kBetweenPublications;
  failures_ = 0;
}

void PublishSchedule::Failed(MonoTime now) {
  not_before_ = now + BackoffDelay(kAfterFailure, failures_, 0);
  ++failures_;
}

}  // namespace cachewarm::cli
