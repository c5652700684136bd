// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "operator/controllers/wish_subject.h"
#include "operator/observe/wish_triggers.h"
#include "operator/observe/world.h"
#include "operator/wishes/decide.h"

namespace cachewarm::controllers {

// Makes, keeps and removes the CacheWarmup that a workload's annotations or the label of a
// namespace ask for, as wishes::Decide() says. The key is an observe::WorkloadKey. Nothing is
// written to the workload but events; each problem is told once while it lasts.
class Wishes {
 public:
  struct Means {
    kube::Client& client;
    const Clock& clock;
    kube::EventSink& events;
    Log& log;
  };

  // Everything must outlive it.
  Wishes(const observe::World& world, Means means) : world_(world), means_(means) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::StatusOr<kube::Outcome> Advance(const WishSubject& subject, const std::string& key,
                                        std::stop_token stop);
  // Gives the CacheWarmup as it is after the step; null when it is gone.
  absl::StatusOr<kube::Object> Take(const wishes::Verdict& verdict, const kube::Object& present,
                                    std::stop_token stop);
  void Tell(const kube::Object& told, const std::vector<wishes::Note>& notes);
  // Leaves out what was told before and still lasts.
  void TellProblems(const kube::Object& told, const std::string& key,
                    const std::vector<wishes::Note>& problems);
  void Forget(const std::string& key);

  const observe::World& world_;
  Means means_;
  std::mutex mutex_;
  std::map<std::string, std::set<std::string>> told_;  // by key: what was told of a problem
};

}  // namespace cachewarm::controllers
