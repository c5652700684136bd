// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/pod_turns.h"

#include "fmt/format.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::kube {
namespace {

// API servers mean to answer within a second, webhooks of theirs included, and a loaded one takes a
// few: whatever takes longer is more likely to wait for somebody who is not there.
constexpr Duration kUsualLimit{3'000};
constexpr Duration kSlow{1'000};
// No pod of it was patched meanwhile: it may have been deleted.
constexpr Duration kForgotten{600'000};

}  // namespace

// Counted from its making to its end.
class PodTurns::Turn {
 public:
  Turn(PodTurns& turns, const std::string& ns) : turns_(turns) {
    std::lock_guard lock(turns_.mutex_);
    is_slow_ = turns_.slow_since_.contains(ns);
    may_begin_ = !is_slow_ || turns_.slow_under_way_ < turns_.slow_.at_once;
    turns_.slow_under_way_ += is_slow_ && may_begin_ ? 1 : 0;
  }
  ~Turn() {
    std::lock_guard lock(turns_.mutex_);
    turns_.slow_under_way_ -= is_slow_ && may_begin_ ? 1 : 0;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool may_begin() const { return may_begin_; }
  Duration limit() const { return is_slow_ ? turns_.slow_.limit : kUsualLimit; }

 private:
  PodTurns& turns_;
  bool is_slow_ = false;
  bool may_begin_ = false;
};

absl::Status PodTurns::Take(const std::string& ns, std::stop_token stop, const Patch& patch) {
  const Turn turn(*this, ns);
  if (!turn.may_begin()) {
    return absl::AbortedError(
        fmt::format("pods of namespace {} take long to patch: it waits for its turn", ns));
  }
  const MonoTime began = clock_.Monotonic();
  const StopAfter over(clock_, turn.limit(), stop);
  absl::Status status = patch(over.token());
  if (stop.stop_requested()) {
    return status;
  }
  Learn(ns, clock_.Monotonic() - began, status.ok());
  return absl::IsCancelled(status) ? absl::DeadlineExceededError(fmt::format(
                                         "not patched within {}", FormatDuration(turn.limit())))
                                   : status;
}

void PodTurns::Learn(const std::string& ns, Duration took, bool ok) {
  std::lock_guard lock(mutex_);
  const MonoTime now = clock_.Monotonic();
  std::erase_if(slow_since_, [&](const auto& each) { return now - each.second > kForgotten; });
  if (took < kSlow) {
    slow_since_.erase(ns);
  } else if (!ok) {
    slow_since_[ns] = now;
  }
}

}  // namespace cachewarm::kube
