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
#include "operator/plan/plan.h"

namespace cachewarm::apply {

// Sends spec.compile.requests to the pods of builder Jobs, those of one pod in their order on a
// thread of its own (as many at a time as builder Jobs may run), and keeps what came of it until
// the plan has taken it. Memory only: what has been answered stands in status.builders, and a new
// leader sends only to pods that do not stand there. Thread-safe.
class BuildRequests {
 public:
  // A client that speaks plain http with `host`, follows no redirect, and bounds what the pod of a
  // tenant may answer.
  using Connect =
      std::function<absl::StatusOr<std::unique_ptr<http::Client>>(const std::string& host)>;
  struct Dependencies {
    const Clock& clock;
    Log& log;
    Connect connect;
    // Called on the sending thread when a pod's requests have ended: "ns/name" of the warmup.
    std::function<void(const std::string& warmup)> wake;
  };

  // Everything must outlive it.
  explicit BuildRequests(Dependencies deps) : deps_(std::move(deps)) {}
  ~BuildRequests();
  BuildRequests(const BuildRequests&) = delete;
  BuildRequests& operator=(const BuildRequests&) = delete;

  // Begins what `desired` asks for and is not begun; ends and forgets what it asks for no more.
  void Update(const api::CacheWarmup& warmup,
              const std::vector<plan::DesiredBuildRequests>& desired);

  // Ends and forgets those of earlier warmups of this name; `uid` is that of the live one, "" when
  // there is none.
  void StopOthers(const kube::ObjectName& name, const std::string& uid);

  // Those of this warmup that have begun.
  std::vector<plan::BuildRequestsState> States(const std::string& warmup_uid) const;

  // Ends all of them, and waits: another operator leads now.
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

  // Takes out those that `is_over` of, told to stop; their threads end when the caller drops them,
  // which is outside the lock.
  Sendings Extract(const std::function<bool(const std::string&, const Sending&)>& is_over);
  void Send(const plan::DesiredBuildRequests& batch, const std::string& warmup,
            std::stop_token stop);

  Dependencies deps_;
  mutable std::mutex mutex_;
  Sendings sendings_;
};

// The address may be that of a pod: an IP literal that is not loopback, link-local, multicast or
// unspecified. Whoever can write a pod's status must not lead the operator to a metadata server.
bool IsPodAddress(const std::string& ip);

}  // namespace cachewarm::apply
