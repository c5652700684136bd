// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/held_pods.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/api/gate/release.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/fan_out.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/runtime/stop_after.h"
#include "operator/apply/executor.h"
#include "operator/observe/promises.h"

namespace cachewarm::controllers {
namespace {

// After the deadline of the plan; creation times are whole seconds.
constexpr Duration kGrace{1500};
// The same for replicas that do not lead: after the leader, and with time left for the patch.
constexpr Duration kStandbyGrace{3000};
// What let a young pod be held, a warmup or its label, may not have reached our store yet.
constexpr Duration kStoreLag{2000};
constexpr size_t kSweepWidth = 16;
constexpr Duration kSweepMost{5'000};
// Nobody else lets go of it: a webhook may take the 30 s that the API gives it at most.
constexpr kube::PodTurns::SlowTurns kSlowTurns{.at_once = kHeldWorkers / 2,
                                               .limit = Duration(30'000)};
// A pod that is newer than the budgets counts from its own creation, so that much later at most.
constexpr Duration kBudgetsStay{500};
// What a warmup allows that says nothing else; for pods of warmups that cannot be read.
constexpr Duration kUsualHold = std::chrono::seconds(api::GateSpec{}.max_hold_seconds);

std::string WarmupNameOf(const api::Pod& pod) {
  const auto found = pod.meta.annotations.find(api::kWarmupAnnotation);
  return std::string(found == pod.meta.annotations.end() ? "" : api::WarmupNameIn(found->second));
}

HeldVerdict At(WallTime due, WallTime now, std::string_view reason) {
  if (now >= due) {
    return {.reason = reason, .wait = std::nullopt};
  }
  return {.reason = "", .wait = due - now};
}

}  // namespace

HeldVerdict JudgeHeld(const api::Pod& pod, const api::CacheWarmup* warmup, WallTime now,
                      WallTime deadline) {
  if (warmup == nullptr || !warmup->labels.contains(std::string(api::kInjectLabel))) {
    return At(pod.meta.created + kStoreLag, now, api::reason::kReleasedWithdrawn);
  }
  if (warmup->deleting || warmup->spec.paused || warmup->spec.gate.mode == api::GateMode::kOff) {
    return {.reason = api::reason::kReleasedWithdrawn, .wait = std::nullopt};
  }
  return At(deadline, now, api::reason::kReleasedDeadline);
}

HeldVerdict JudgeOverdue(const api::Pod& pod, WallTime now, WallTime deadline) {
  return At(std::max(deadline, pod.meta.created + kStoreLag) + kStandbyGrace, now,
            api::reason::kReleasedDeadline);
}

HeldPods::HeldPods(const observe::World& world, Means means)
    : world_(world), means_(means), turns_(means.clock, kSlowTurns) {}

void HeldPods::Sweep(std::stop_token stop) {
  const std::vector<kube::Kept> held = world_.pods.store().ByIndex(observe::kHeldIndex);
  const kube::StopAfter over(means_.clock, kSweepMost, std::move(stop));
  FanOut(held.size(), kSweepWidth, over.token(), [&](size_t i) {
    const auto outcome = Look(held[i], Duration(0), over.token());
    if (!outcome.ok() && !absl::IsAborted(outcome.status())) {
      means_.log.Warning("held pod not released", {{"pod", held[i]->name().ToString()},
                                                   {"error", Message(outcome.status())}});
    }
  });
  means_.log.Info("held pods swept", {{"held", static_cast<int64_t>(held.size())}});
}

absl::StatusOr<kube::Outcome> HeldPods::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const kube::ObjectName name, kube::ObjectName::Parse(key));
  const kube::Kept object = world_.pods.store().Find(name);
  if (object == nullptr) {
    return kube::Outcome{};
  }
  return Look(object, kGrace, stop);
}

absl::StatusOr<kube::Outcome> HeldPods::Look(const kube::Kept& object, Duration grace,
                                             std::stop_token stop) {
  std::shared_ptr<const api::Pod> pod = world_.pod_views.Of(object);
  if (pod == nullptr) {  // nobody can plan for it
    const kube::Object whole = object->Unpack();
    api::Pod bare = api::gate::DecodeGates(*whole);
    bare.object = whole;
    pod = std::make_shared<const api::Pod>(std::move(bare));
  }
  if (!api::gate::IsHeld(*pod) || pod->meta.deleting) {
    return kube::Outcome{};
  }
  const HeldVerdict verdict = Judge(*pod, grace);
  if (verdict.reason.empty()) {
    return kube::Outcome{.requeue_after = verdict.wait};
  }
  CW_RETURN_IF_ERROR(Release(pod, verdict.reason, stop));
  return kube::Outcome{};
}

HeldVerdict HeldPods::Judge(const api::Pod& pod, Duration grace) const {
  const WallTime now = means_.clock.Now();
  // Before a list came, a warmup that is not in the store is no warmup that is gone.
  if (!world_.warmups.store().HasSynced()) {
    return JudgeOverdue(pod, now, api::gate::Deadline(pod, kUsualHold));
  }
  const auto warmup = world_.warmup_views.Get({.ns = pod.meta.ns, .name = WarmupNameOf(pod)});
  const WallTime deadline = DeadlineOf(pod, warmup.get());
  return leading_ ? JudgeHeld(pod, warmup.get(), now, deadline + grace)
                  : JudgeOverdue(pod, now, deadline);
}

WallTime HeldPods::DeadlineOf(const api::Pod& pod, const api::CacheWarmup* warmup) const {
  return warmup == nullptr ? pod.meta.created : BudgetsOf(*warmup)->DeadlineOf(pod);
}

// From all pods of the warmup: those that were held before have used up some of the budget. Of a
// burst every pod is looked at, and would have all of them read once more.
std::shared_ptr<const plan::Budgets> HeldPods::BudgetsOf(const api::CacheWarmup& warmup) const {
  const std::string key = warmup.ns + "/" + warmup.name;
  // While one worker reads them, the others wait for what it has read.
  std::lock_guard lock(known_mutex_);
  const MonoTime now = means_.clock.Monotonic();
  std::erase_if(known_, [&](const auto& each) { return now - each.second.read > kBudgetsStay; });
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.resource_version == warmup.resource_version) {
    return known->second.budgets;
  }
  const auto pods = world_.pod_views.Of(
      world_.pods.store().ByIndex(observe::InjectedIndex(warmup.ns, warmup.name)));
  const Duration longest = plan::LongestHold(warmup, observe::ReadPromises(world_, warmup));
  auto budgets = std::make_shared<const plan::Budgets>(pods, longest);
  known_[key] = {.read = means_.clock.Monotonic(),
                 .resource_version = warmup.resource_version,
                 .budgets = budgets};
  return budgets;
}

absl::Status HeldPods::Release(const std::shared_ptr<const api::Pod>& pod, std::string_view reason,
                               std::stop_token stop) {
  const Duration held = std::max(means_.clock.Now() - pod->meta.created, Duration(0));
  const double held_seconds = std::chrono::duration<double>(held).count();
  CW_ASSIGN_OR_RETURN(
      const bool released,
      apply::ReleaseGate(means_.client, turns_,
                         {.pod = pod, .reason = std::string(reason), .held_seconds = held_seconds},
                         std::move(stop)));
  if (!released) {
    return absl::OkStatus();
  }
  const std::string warmup = WarmupNameOf(*pod);
  const bool is_there = world_.warmup_views.Get({.ns = pod->meta.ns, .name = warmup}) != nullptr;
  means_.metrics.CountRelease(pod->meta.ns, is_there ? warmup : "", reason, held_seconds);
  means_.log.Info("pod released", {{"warmup", pod->meta.ns + "/" + warmup},
                                   {"pod", pod->meta.name},
                                   {"reason", reason},
                                   {"held_seconds", held_seconds}});
  means_.events.Record(
      {.regarding = pod->object,
       .reason = std::string(reason),
       .action = "Release",
       .note = fmt::format("released after {} without waiting any longer", FormatDuration(held))});
  return absl::OkStatus();
}

}  // namespace cachewarm::controllers
