// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/kube/core/object.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::kube {

struct LeaderElectorOptions {
  ObjectName lease;
  std::string identity;             // unique per process: pod name and a random part
  Duration lease_duration{15'000};  // other replicas wait this long after the last observed renewal
  Duration renew_deadline{10'000};  // without a renewal for this long the process stops leading
  Duration retry_period{2'000};
};

// Leader election by a coordination.k8s.io/v1 Lease with the rules of client-go's leaderelection:
// the lease has expired when its record has not changed for lease_duration by the local clock;
// times in the record are ignored. Two replicas can lead at once for a moment, for example after a
// leader was paused; server-side apply and resource versions protect the objects that they write.
// The lease is released on stop, so that the next replica leads after about one retry_period.
class LeaderElector {
 public:
  // Requires lease_duration > renew_deadline > 1.2 × retry_period > 0, else INVALID_ARGUMENT.
  static absl::Status Validate(const LeaderElectorOptions& options);

  LeaderElector(const Runtime& runtime, LeaderElectorOptions options);

  // Waits for the lease, then calls `lead` and renews the lease on a separate thread. The token of
  // `lead` fires when the lease is lost or `stop` is requested; `lead` must return soon after that.
  // Then Run() returns: OK after `stop`, ABORTED after a loss.
  absl::Status Run(const std::function<void(std::stop_token)>& lead, std::stop_token stop);

  bool IsLeader() const { return leading_.load(); }

 private:
  // The last observed lease and the local time of its last change.
  struct ObservedLease {
    std::string holder;
    std::string spec;  // as text: any change counts as a renewal
    std::string resource_version;
    std::string acquired;
    int64_t transitions = 0;
    Duration duration{0};
    MonoTime at{};
  };

  bool Acquire(std::stop_token stop);
  void Renew(std::stop_source& lost, std::stop_token stop);
  void WatchDeadline(std::stop_source& lost, std::stop_token stop);
  // Tries to acquire the lease, or to renew it. Returns true if this process holds it now.
  bool TryAcquireOrRenew(std::stop_token stop);
  bool Create(std::stop_token stop);
  bool UpdateLease(std::stop_token stop);
  void Observe(const codec::Json& lease);
  bool IsHeldByAnother() const;
  codec::Json Record(const std::string& holder) const;
  void Release();
  absl::Status GiveUp(std::stop_token stop);

  Runtime runtime_;
  LeaderElectorOptions options_;
  std::optional<ObservedLease> observed_;  // used by one thread at a time
  std::mutex renewed_mutex_;
  std::condition_variable_any renewed_wake_;
  MonoTime renewed_at_{};
  std::atomic<bool> leading_{false};
};

}  // namespace cachewarm::kube
