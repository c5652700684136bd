// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/held_pods.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/fan_out.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "lib/kube/runtime/stop_after.h"
#include "operator/apply/executor.h"
#include "operator/observe/rollout_constraints.h"

namespace cachewarm::controllers {
namespace {

// Time after the deadline that this controller leaves to the plan to release the pod. More than one
// second, because deadlines are counted from creation times, which are in whole seconds.
constexpr Duration kGrace{1500};
// Time after the deadline during which a standby leaves the release to the leader. Short enough to
// release the pod within 5 s of its deadline.
constexpr Duration kStandbyGrace{3000};
// Time from the creation of a held pod until the store has certainly received the warmup and the
// inject label that caused the hold. Before that, the pod is not released for a missing warmup or
// label, because the store may only be late.
constexpr Duration kStoreLag{2000};
constexpr size_t kSweepWidth = 16;
constexpr Duration kSweepTimeout{5'000};
// A patch may take as long as a webhook may (30 s), because the operator has no other component
// that would release the pod. kHeldLanes keeps threads free for other namespaces.
constexpr gate::SlowNamespaceLimiter::SlowPatches kTurns{
    .at_once = SIZE_MAX, .limit = Duration(30'000), .usual = Duration(30'000)};
// The sweep of a new leader waits for no webhook: Reconcile() releases those pods.
constexpr gate::SlowNamespaceLimiter::SlowPatches kSweepTurns{.at_once = 1,
                                                              .limit = Duration(3'000)};
// Maximum age of the hold deadlines in `cached_budgets_`. If a pod that was created after they were
// computed begins the hold budget of a rollout, the deadlines of that rollout's pods are too late
// by at most this time.
constexpr Duration kBudgetsTtl{500};
// Default of spec.gate.maxHoldSeconds. It applies to pods without a deadline annotation until the
// warmup store has synced.
constexpr Duration kDefaultHold = std::chrono::seconds(api::GateSpec{}.max_hold_seconds);

std::string WarmupNameOf(const api::Pod& pod) {
  const auto found = pod.meta.annotations.find(api::kWarmupAnnotation);
  return std::string(found == pod.meta.annotations.end() ? "" : api::WarmupNameIn(found->second));
}

HeldDecision At(WallTime due, WallTime now, std::string_view reason) {
  if (now >= due) {
    return {.reason = reason, .wait = std::nullopt};
  }
  return {.reason = "", .wait = due - now};
}

}  // namespace

HeldDecision EvaluateHeldPod(const api::Pod& pod, const api::CacheWarmup* warmup, WallTime now,
                             WallTime deadline) {
  if (warmup == nullptr || !warmup->labels.contains(std::string(api::kInjectLabel))) {
    return At(pod.meta.created + kStoreLag, now, api::reason::kReleasedHoldingDisabled);
  }
  if (warmup->deleting || warmup->spec.paused || warmup->spec.gate.mode == api::GateMode::kNever) {
    return {.reason = api::reason::kReleasedHoldingDisabled, .wait = std::nullopt};
  }
  return At(deadline, now, api::reason::kReleasedAtDeadline);
}

HeldDecision EvaluateOverduePod(const api::Pod& pod, WallTime now, WallTime deadline) {
  return At(std::max(deadline, pod.meta.created + kStoreLag) + kStandbyGrace, now,
            api::reason::kReleasedAtDeadline);
}

HeldPods::HeldPods(const observe::ClusterCache& cluster, Dependencies deps)
    : cluster_(cluster),
      deps_(deps),
      turns_(deps.clock, kTurns),
      sweep_turns_(deps.clock, kSweepTurns) {}

void HeldPods::Sweep(std::stop_token stop) {
  const std::vector<kube::CachedObjectPtr> held =
      cluster_.pods.store().ByIndex(observe::kHeldIndex);
  const kube::StopAfter over(deps_.clock, kSweepTimeout, std::move(stop));
  FanOut(held.size(), kSweepWidth, over.token(), [&](size_t i) {
    const auto outcome =
        ReconcilePod(held[i], {.grace = Duration(0), .turns = sweep_turns_}, over.token());
    if (!outcome.ok() && !absl::IsAborted(outcome.status())) {
      deps_.log.Warning("failed to release held pod",
                        {{"pod", held[i]->name().ToString()}, {"err", Message(outcome.status())}});
    }
  });
  deps_.log.Info("held pods checked, overdue ones released",
                 {{"heldPods", static_cast<int64_t>(held.size())}});
}

absl::StatusOr<kube::Outcome> HeldPods::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const kube::ObjectName name, kube::ObjectName::Parse(key));
  const kube::CachedObjectPtr object = cluster_.pods.store().Find(name);
  if (object == nullptr) {
    return kube::Outcome{};
  }
  return ReconcilePod(object, {.grace = kGrace, .turns = turns_}, stop);
}

absl::StatusOr<kube::Outcome> HeldPods::ReconcilePod(const kube::CachedObjectPtr& object,
                                                     const Mode& mode, std::stop_token stop) {
  std::shared_ptr<const api::Pod> pod = cluster_.pod_views.Of(object);
  if (pod == nullptr) {  // the pod cannot be decoded, so no plan covers it
    const kube::Object whole = object->Unpack();
    api::Pod bare = gate::DecodeGates(*whole);
    bare.object = whole;
    pod = std::make_shared<const api::Pod>(std::move(bare));
  }
  if (!gate::IsHeld(*pod) || pod->meta.deleting) {
    return kube::Outcome{};
  }
  const HeldDecision decision = Evaluate(*pod, mode.grace);
  if (decision.reason.empty()) {
    return kube::Outcome{.requeue_after = decision.wait};
  }
  CW_RETURN_IF_ERROR(Release(pod, decision.reason, mode.turns, stop));
  return kube::Outcome{};
}

HeldDecision HeldPods::Evaluate(const api::Pod& pod, Duration grace) const {
  const WallTime now = deps_.clock.Now();
  // Until the first list of warmups has synced, a warmup that the store lacks may still exist.
  if (!cluster_.warmups.store().HasSynced()) {
    return EvaluateOverduePod(pod, now, gate::Deadline(pod, kDefaultHold));
  }
  const auto warmup = cluster_.warmup_views.Get({.ns = pod.meta.ns, .name = WarmupNameOf(pod)});
  const WallTime deadline = DeadlineOf(pod, warmup.get());
  return leading_ ? EvaluateHeldPod(pod, warmup.get(), now, deadline + grace)
                  : EvaluateOverduePod(pod, now, deadline);
}

WallTime HeldPods::DeadlineOf(const api::Pod& pod, const api::CacheWarmup* warmup) const {
  return warmup == nullptr ? pod.meta.created : BudgetsOf(*warmup)->DeadlineOf(pod);
}

// Returns the hold deadlines of the warmup's pods. They are computed from all pods of the warmup,
// because the pods of a rollout share one hold budget. They are cached, because otherwise each pod
// of a burst would read all pods.
std::shared_ptr<const plan::HoldDeadlines> HeldPods::BudgetsOf(
    const api::CacheWarmup& warmup) const {
  const std::string key = warmup.ns + "/" + warmup.name;
  // One worker thread computes the budgets; the others wait for its result.
  std::lock_guard lock(budgets_mutex_);
  const MonoTime now = deps_.clock.Monotonic();
  std::erase_if(cached_budgets_,
                [&](const auto& each) { return now - each.second.read > kBudgetsTtl; });
  const auto cached = cached_budgets_.find(key);
  if (cached != cached_budgets_.end() &&
      cached->second.resource_version == warmup.resource_version) {
    return cached->second.budgets;
  }
  const auto pods = cluster_.pod_views.Of(
      cluster_.pods.store().ByIndex(observe::InjectedIndex(warmup.ns, warmup.name)));
  const Duration longest = plan::MaxHold(warmup, observe::ReadRolloutConstraints(cluster_, warmup));
  auto budgets = std::make_shared<const plan::HoldDeadlines>(pods, longest);
  cached_budgets_[key] = {.read = deps_.clock.Monotonic(),
                          .resource_version = warmup.resource_version,
                          .budgets = budgets};
  return budgets;
}

absl::Status HeldPods::Release(const std::shared_ptr<const api::Pod>& pod, std::string_view reason,
                               gate::SlowNamespaceLimiter& turns, std::stop_token stop) {
  const Duration held = std::max(deps_.clock.Now() - pod->meta.created, Duration(0));
  const double held_seconds = std::chrono::duration<double>(held).count();
  CW_ASSIGN_OR_RETURN(
      const bool released,
      apply::ReleaseGate(
          {.client = deps_.client, .turns = turns, .refusals = deps_.release_refusals},
          {.pod = pod, .reason = std::string(reason), .held_seconds = held_seconds},
          std::move(stop)));
  if (!released) {
    return absl::OkStatus();
  }
  const std::string warmup = WarmupNameOf(*pod);
  const bool is_there = cluster_.warmup_views.Get({.ns = pod->meta.ns, .name = warmup}) != nullptr;
  deps_.metrics.CountRelease(pod->meta.ns, is_there ? warmup : "", reason, held_seconds);
  deps_.log.Info("pod released", {{"cacheWarmup", pod->meta.ns + "/" + warmup},
                                  {"pod", pod->meta.ns + "/" + pod->meta.name},
                                  {"reason", reason},
                                  {"heldSeconds", held_seconds}});
  deps_.events.Record({.regarding = pod->object,
                       .reason = std::string(reason),
                       .action = "Release",
                       .note = fmt::format("released from the cachewarm scheduling gate after {}",
                                           FormatDuration(held))});
  return absl::OkStatus();
}

}  // namespace cachewarm::controllers
