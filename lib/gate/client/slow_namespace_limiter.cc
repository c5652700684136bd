// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/slow_namespace_limiter.h"

#include "fmt/format.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::gate {
namespace {

constexpr Duration kSlow{1'000};
// A namespace stays slow for at most this long after its last slow failure, because a deleted
// namespace gets no fast patch that would end the state earlier.
constexpr Duration kForgetAfter{600'000};

}  // namespace

// One running patch. While the object exists, a patch of a slow namespace counts in
// slow_in_flight_.
class SlowNamespaceLimiter::Slot {
 public:
  Slot(SlowNamespaceLimiter& limiter, const std::string& ns) : limiter_(limiter), ns_(ns) {
    std::lock_guard lock(limiter_.mutex_);
    is_slow_ = limiter_.slow_since_.contains(ns);
    if (!is_slow_) {
      return;
    }
    size_t& in_flight = limiter_.slow_in_flight_[ns];
    may_begin_ = in_flight < limiter_.slow_.at_once;
    in_flight += may_begin_ ? 1 : 0;
  }
  ~Slot() {
    std::lock_guard lock(limiter_.mutex_);
    const auto in_flight = limiter_.slow_in_flight_.find(ns_);
    if (is_slow_ && in_flight != limiter_.slow_in_flight_.end()) {
      in_flight->second -= may_begin_ ? 1 : 0;
      if (in_flight->second == 0) {
        limiter_.slow_in_flight_.erase(in_flight);
      }
    }
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  bool may_begin() const { return may_begin_; }
  Duration limit() const { return is_slow_ ? limiter_.slow_.limit : limiter_.slow_.usual; }

 private:
  SlowNamespaceLimiter& limiter_;
  const std::string& ns_;
  bool is_slow_ = false;
  bool may_begin_ = true;
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
