// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/http/client.h"
#include "lib/kube/core/object.h"
#include "operator/model/plan.h"

namespace cachewarm::apply {

// Sends spec.compile.requests to the pods of builder Jobs and keeps the results until the plan has
// read them. Each pod has one thread, which sends its requests in order. State is in memory only:
// results are recorded in status.builders, and a new leader sends only to pods without a recorded
// result. Thread-safe.
class BuildRequests {
 public:
  // Returns a client that speaks plain HTTP to `host`, follows no redirect, and limits the size of
  // responses, which are untrusted.
  using Connect =
      std::function<absl::StatusOr<std::unique_ptr<http::Client>>(const std::string& host)>;
  struct Dependencies {
    const Clock& clock;
    Log& log;
    Connect connect;
    // Called on the sending thread with the warmup's "ns/name" when a pod's requests have ended.
    std::function<void(const std::string& warmup)> wake;
  };

  // All references must outlive this object.
  explicit BuildRequests(Dependencies deps) : deps_(std::move(deps)) {}
  ~BuildRequests();
  BuildRequests(const BuildRequests&) = delete;
  BuildRequests& operator=(const BuildRequests&) = delete;

  // Starts the requests in `desired` that were not started yet. Stops and forgets requests of this
  // warmup that are not in `desired` any more.
  void Update(const api::CacheWarmup& warmup,
              const std::vector<model::DesiredBuildRequests>& desired);

  // Stops and forgets the requests of deleted warmups with this name. `uid` is the uid of the
  // present warmup; "" if none exists.
  void StopOthers(const kube::ObjectName& name, const std::string& uid);

  // Returns the state of all started requests of the warmup.
  std::vector<model::BuildRequestsState> States(const std::string& warmup_uid) const;

  // Stops all requests and waits for their threads. Call after leadership was lost.
  void Stop();

 private:
  struct Sending {
    kube::ObjectName warmup;
    std::string warmup_uid;
    bool ended = false;
    absl::Status status;
    std::jthread thread;
  };

  using Sendings = std::map<std::string, std::unique_ptr<Sending>>;  // by pod uid

  // Removes and returns each Sending for which `is_over` returns true, after requesting its thread
  // to stop. Destroy the result without holding the lock: its destructor joins the threads, which
  // may need the lock to end.
  Sendings Extract(const std::function<bool(const std::string&, const Sending&)>& is_over);
  void Send(const model::DesiredBuildRequests& batch, const std::string& warmup,
            std::stop_token stop);

  Dependencies deps_;
  mutable std::mutex mutex_;
  Sendings sendings_;
};

// True if `ip` is an IP literal and not a loopback, link-local, multicast or unspecified address.
// Without this check, anyone who can write a pod's status could direct the operator's requests to a
// metadata server.
bool IsPodAddress(const std::string& ip);

}  // namespace cachewarm::apply
