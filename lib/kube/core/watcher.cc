// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/watcher.h"

#include <algorithm>
#include <utility>

#include "lib/kube/core/error.h"

namespace cachewarm::kube {
namespace {

constexpr Duration kHealthyAgain = std::chrono::seconds(120);
constexpr Duration kShortestWatch = std::chrono::seconds(1);
constexpr int kShrinkPageBy = 8;  // a page of 500 items shrinks to one item in three attempts

}  // namespace

Watcher::Watcher(BackoffPolicy backoff, int page_items)
    : backoff_(backoff), page_items_most_(page_items), page_items_(page_items) {}

WatcherAction Watcher::Next(MonoTime now, double random) {
  WatcherAction action;
  if (std::exchange(sleep_due_, false)) {
    action.type = WatcherActionType::kSleep;
    action.delay = BackoffDelay(backoff_, failures_ - 1, random);
  } else if (state_ == State::kWatching) {
    action.type = WatcherActionType::kWatch;
    action.resource_version = resource_version_;
    watch_began_ = now;
    received_event_ = false;
  } else {
    action.type = WatcherActionType::kList;
    action.continue_token = continue_token_;
    action.page_items = page_items_;
  }
  return action;
}

bool Watcher::OnPage(std::string continue_token, std::string resource_version) {
  continue_token_ = std::move(continue_token);
  resource_version_ = std::move(resource_version);
  page_items_ = std::min(page_items_ * 2, page_items_most_);
  state_ = continue_token_.empty() ? State::kWatching : State::kListing;
  return state_ == State::kWatching;
}

void Watcher::OnListFailure(const absl::Status& status, MonoTime now) {
  if (IsTooLong(status) && page_items_ > 1) {
    page_items_ = std::max(1, page_items_ / kShrinkPageBy);
    return;
  }
  const bool token_expired = absl::IsOutOfRange(status) && state_ == State::kListing;
  Restart();
  if (token_expired && !FailedRecently(now)) {
    RecordFailure(now);
  } else {
    Fail(now);
  }
}

void Watcher::OnProgress(std::string resource_version) {
  received_event_ = true;
  if (!resource_version.empty()) {
    resource_version_ = std::move(resource_version);
  }
}

void Watcher::OnWatchEnd(const absl::Status& status, MonoTime now) {
  if (status.ok()) {
    if (!received_event_ && now - watch_began_ < kShortestWatch) {
      Fail(now);
    }
    return;
  }
  if (absl::IsOutOfRange(status) || absl::IsInvalidArgument(status)) {
    Restart();
  }
  if (absl::IsOutOfRange(status) && !FailedRecently(now)) {
    RecordFailure(now);
  } else {
    Fail(now);
  }
}

bool Watcher::FailedRecently(MonoTime now) const {
  return failures_ > 0 && now - last_failure_ < kHealthyAgain;
}

void Watcher::RecordFailure(MonoTime now) {
  failures_ = FailedRecently(now) ? failures_ + 1 : 1;
  last_failure_ = now;
}

void Watcher::Fail(MonoTime now) {
  RecordFailure(now);
  sleep_due_ = true;
}

void Watcher::Restart() {
  state_ = State::kEmpty;
  continue_token_.clear();
  resource_version_.clear();
}

}  // namespace cachewarm::kube
