// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/slow_namespace_limiter.h"

#include "fmt/format.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::gate {
namespace {

// Time after which a patch is cancelled in a namespace that is not slow. An API server answers
// within a second, including the time of its webhooks, or within a few seconds under load. A longer
// patch most likely waits for a webhook that does not answer.
constexpr Duration kUsualLimit{3'000};
constexpr Duration kSlow{1'000};
// A namespace stays slow for at most this long after its last slow failure, because a deleted
// namespace gets no fast patch that would end the state earlier.
constexpr Duration kForgetAfter{600'000};

}  // namespace

// One running patch. While the object exists, a patch of a slow namespace counts in
// slow_in_flight_.
class SlowNamespaceLimiter::Slot {
 public:
  Slot(SlowNamespaceLimiter& limiter, const std::string& ns) : limiter_(limiter) {
    std::lock_guard lock(limiter_.mutex_);
    is_slow_ = limiter_.slow_since_.contains(ns);
    may_begin_ = !is_slow_ || limiter_.slow_in_flight_ < limiter_.slow_.at_once;
    limiter_.slow_in_flight_ += is_slow_ && may_begin_ ? 1 : 0;
  }
  ~Slot() {
    std::lock_guard lock(limiter_.mutex_);
    limiter_.slow_in_flight_ -= is_slow_ && may_begin_ ? 1 : 0;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  bool may_begin() const { return may_begin_; }
  Duration limit() const { return is_slow_ ? limiter_.slow_.limit : kUsualLimit; }

 private:
  SlowNamespaceLimiter& limiter_;
  bool is_slow_ = false;
  bool may_begin_ = false;
};

absl::Status SlowNamespaceLimiter::Run(const std::string& ns, std::stop_token stop,
                                       const Patch& patch) {
  const Slot slot(*this, ns);
  if (!slot.may_begin()) {
    return absl::AbortedError(fmt::format(
        "patches of pods in namespace {} are slow: waiting until fewer of them run", ns));
  }
  const MonoTime began = clock_.Monotonic();
  const kube::StopAfter over(clock_, slot.limit(), stop);
  absl::Status status = patch(over.token());
  if (stop.stop_requested()) {
    return status;
  }
  Record(ns, clock_.Monotonic() - began, status.ok());
  return absl::IsCancelled(status) ? absl::DeadlineExceededError(fmt::format(
                                         "not patched within {}", FormatDuration(slot.limit())))
                                   : status;
}

void SlowNamespaceLimiter::Record(const std::string& ns, Duration took, bool ok) {
  std::lock_guard lock(mutex_);
  const MonoTime now = clock_.Monotonic();
  std::erase_if(slow_since_, [&](const auto& each) { return now - each.second > kForgetAfter; });
  if (took < kSlow) {
    slow_since_.erase(ns);
  } else if (!ok) {
    slow_since_[ns] = now;
  }
}

}  // namespace cachewarm::gate
