// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/executor.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "lib/api/engine_starts.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/fan_out.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/gate/client/release.h"
#include "operator/apply/served_totals.h"
#include "operator/render/affinity.h"
#include "operator/render/applied.h"

namespace cachewarm::apply {
namespace {

using codec::Json;

// Limits for patches in a namespace whose webhooks delay them. Plans of such a namespace have
// worker threads of their own (controllers::WarmupLanes), so a patch may take longer than a webhook
// with the API server's default timeout of 10 s. controllers::HeldPods waits for pods past their
// deadline.
constexpr gate::SlowNamespaceLimiter::SlowPatches kSlowTurns{.at_once = 4,
                                                             .limit = Duration(15'000)};

kube::WriteOptions AsOperator() {
  return {.field_manager = std::string(api::kOperatorManager)};
}

// Returns true if the pod with this uid is gone, even if another pod has its name.
bool IsReplaced(kube::Client& client, const kube::ObjectName& name, const std::string& uid,
                std::stop_token stop) {
  const auto current = client.Do(kube::Get(kube::kPods, name), stop);
  return current.ok() ? kube::UidOf(*current) != uid : absl::IsNotFound(current.status());
}

// Converts `ref` to the object that kube::EventSink expects.
kube::Object Regarding(const model::ObjectRef& ref) {
  return std::make_shared<const Json>(
      Json{{"apiVersion", ref.api_version},
           {"kind", ref.kind},
           {"metadata", {{"namespace", ref.ns}, {"name", ref.name}, {"uid", ref.uid}}}});
}

// Returns true if validation or an admission policy of the API server rejected the request, so that
// a retry would be rejected too.
bool IsRejected(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status);
}

absl::StatusOr<bool> ReleaseWith(kube::Client& client, const model::GateRelease& release,
                                 const render::HostRules& rules, std::stop_token stop) {
  const Json affinity = render::WithHostRules(*release.pod, rules);
  return gate::Release(client,
                       {.pod = *release.pod,
                        .reason = release.reason,
                        .held_seconds = release.held_seconds,
                        .affinity = &affinity,
                        .manager = api::kOperatorManager},
                       stop);
}

// True if `harvest` has ended, and had not in `before`.
bool HasHarvestEnded(const api::HarvestStatus& harvest,
                     const std::vector<api::HarvestStatus>& before) {
  return harvest.finished_time != WallTime{} &&
         std::none_of(before.begin(), before.end(), [&](const api::HarvestStatus& each) {
           return each.key == harvest.key && each.number == harvest.number &&
                  each.finished_time != WallTime{};
         });
}

// Returns the label `result` of cachewarm_harvests_total.
std::string HarvestResult(std::string_view reason) {
  if (reason == api::reason::kHarvested) {
    return "harvested";
  }
  if (reason == api::reason::kNothingNew) {
    return "nothing_new";
  }
  return reason == api::reason::kHarvestRefused ? "refused" : "failed";
}

}  // namespace

// The pods that one plan has released so far.
struct Executor::Released {
  void Add(const model::GateRelease& release) {
    std::lock_guard lock(mutex);
    releases.push_back(&release);
  }

  std::mutex mutex;
  std::vector<const model::GateRelease*> releases;
};

absl::StatusOr<bool> ReleaseGate(const ReleaseDependencies& deps, const model::GateRelease& release,
                                 std::stop_token stop) {
  const std::string& ns = release.pod->meta.ns;
  const render::HostRules rules{.excluded = release.excluded, .preferred = release.preferred};
  const bool prefers = !release.preferred.empty() && release.excluded.empty();
  bool done = false;
  const auto patch = [&](const std::stop_token& ending) {
    absl::StatusOr<bool> released = ReleaseWith(deps.client, release, rules, ending);
    if (IsRejected(released.status()) && prefers) {
      released = ReleaseWith(deps.client, release, {}, ending);
    }
    done = released.ok() && *released;
    return released.status();
  };
  const absl::Status status = deps.turns.Run(ns, std::move(stop), patch);
  if (IsRejected(status) && release.excluded.empty()) {
    deps.refusals.Record(ns, Message(status));
  } else if (done) {
    deps.refusals.Forget(ns);
  }
  CW_RETURN_IF_ERROR(status);
  return done;
}

Executor::Executor(Dependencies deps)
    : deps_(deps), slots_(deps.width), turns_(deps.clock, kSlowTurns) {}

absl::StatusOr<ExecuteResult> Executor::Execute(const api::CacheWarmup& warmup,
                                                const model::Plan& plan,
                                                std::stop_token stop) const {
  const bool exists = !warmup.resource_version.empty();
  if (exists && plan.status_changed) {
    CW_RETURN_IF_ERROR(WriteStatus(warmup, plan, stop));
    Count(warmup, plan);
  }
  if (exists) {
    ServeTotals(deps_.metrics, warmup.ns, warmup.name, plan.status.starts);
  }
  // Record the events right after the status: if a later step fails, the next plan sees the new
  // status and does not request the events again.
  for (const model::EventRequest& request : plan.events) {
    RecordEvent(request);
  }
  if (exists && plan.set_inject_label.has_value()) {
    CW_RETURN_IF_ERROR(SetLabel(warmup, *plan.set_inject_label, stop));
  }
  CW_ASSIGN_OR_RETURN(const size_t rejected_nodes, WriteNodes(warmup, plan, stop));
  // A failed write of an annotation must not delay the release of held pods: return its error last.
  const absl::StatusOr<size_t> rejected_annotations = Annotate(warmup, plan, stop);
  CW_ASSIGN_OR_RETURN(const size_t rejected_releases, Release(warmup, plan, stop));
  CW_RETURN_IF_ERROR(ChangeJobs(warmup, plan, stop));
  CW_RETURN_IF_ERROR(rejected_annotations.status());
  return ExecuteResult{.rejected = rejected_nodes + *rejected_annotations + rejected_releases};
}

absl::Status Executor::WriteStatus(const api::CacheWarmup& warmup, const model::Plan& plan,
                                   std::stop_token stop) const {
  kube::WriteOptions options = AsOperator();
  options.subresource = "status";
  return deps_.client
      .Do(kube::Apply(kube::kCacheWarmups, render::StatusApply(warmup, plan.status), options), stop)
      .status();
}

absl::StatusOr<size_t> Executor::TryAll(const Requests& requests, std::stop_token stop) const {
  std::mutex mutex;
  absl::Status first;
  absl::Status rejection;
  size_t rejected = 0;
  FanOut(requests.count, deps_.width, stop, [&](size_t i) {
    const NamespaceSlots::Guard guard(slots_, requests.ns);
    const absl::Status status = requests.each(i);
    std::lock_guard lock(mutex);
    rejected += IsRejected(status) ? 1U : 0U;
    (IsRejected(status) ? rejection : first).Update(status);
  });
  if (rejected > 0) {
    deps_.log.Warning("requests rejected by the API server",
                      {{"err", Message(rejection)}, {"rejected", static_cast<int64_t>(rejected)}});
  }
  CW_RETURN_IF_ERROR(first);
  if (stop.stop_requested()) {
    return absl::CancelledError("stopping");
  }
  return rejected;
}

absl::Status Executor::SetLabel(const api::CacheWarmup& warmup, bool inject,
                                std::stop_token stop) const {
  Json patch = render::InjectLabelPatch(inject);
  patch["metadata"]["uid"] = warmup.uid;
  const auto answer =
      deps_.client.Do(kube::MergePatch(kube::kCacheWarmups, {.ns = warmup.ns, .name = warmup.name},
                                       patch, AsOperator()),
                      stop);
  deps_.log.Info(
      "injection switched",
      {{"cacheWarmup", warmup.ns + "/" + warmup.name}, {"inject", inject}, {"ok", answer.ok()}});
  return absl::IsNotFound(answer.status()) ? absl::OkStatus() : answer.status();
}

absl::StatusOr<size_t> Executor::WriteNodes(const api::CacheWarmup& warmup, const model::Plan& plan,
                                            std::stop_token stop) const {
  const kube::WriteOptions options{.field_manager = api::WarmupManager(warmup.uid)};
  const auto write = [&](size_t i) {
    const auto answer = deps_.client.Do(
        kube::Apply(kube::kNodeCaches,
                    render::NodeCacheApply(plan.nodes[i].node, plan.nodes[i].spec), options),
        stop);
    return cachewarm::Annotate(answer.status(), "cannot write NodeCache " + plan.nodes[i].node);
  };
  return TryAll({.ns = warmup.ns, .count = plan.nodes.size(), .each = write}, stop);
}

absl::Status Executor::ChangeJobs(const api::CacheWarmup& warmup, const model::Plan& plan,
                                  std::stop_token stop) const {
  for (const model::DesiredJob& job : plan.jobs_to_create) {
    const auto answer = deps_.client.Do(kube::Create(kube::kJobs, *job.object, AsOperator()), stop);
    const absl::Status& status = answer.status();
    if (IsRejected(status)) {
      deps_.job_refusals.Record(warmup.uid, job.name, Message(status));
      deps_.log.Warning("builder Job rejected by the API server",
                        {{"job", warmup.ns + "/" + job.name}, {"err", Message(status)}});
      continue;
    }
    if (!status.ok() && !absl::IsAlreadyExists(status)) {
      return cachewarm::Annotate(status, "cannot create builder Job " + job.name);
    }
    deps_.job_refusals.Forget(warmup.uid, job.name);
  }
  for (const std::string& name : plan.jobs_to_delete) {
    const auto answer =
        deps_.client.Do(kube::Delete(kube::kJobs, {.ns = warmup.ns, .name = name}, {}), stop);
    // Without the right to delete Jobs (builders.jobsMax is 0) the Job ends by itself or with its
    // owner.
    if (absl::IsPermissionDenied(answer.status())) {
      deps_.log.Warning("deletion of a builder Job rejected by the API server",
                        {{"job", warmup.ns + "/" + name}, {"err", Message(answer.status())}});
      continue;
    }
    if (!answer.ok() && !absl::IsNotFound(answer.status())) {
      return cachewarm::Annotate(answer.status(), "cannot delete builder Job " + name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Executor::Annotate(const api::CacheWarmup& warmup, const model::Plan& plan,
                                          std::stop_token stop) const {
  const auto annotate = [&](size_t i) {
    const model::PodAnnotation& request = plan.annotations[i];
    const absl::Status status = turns_.Run(request.ns, stop, [&](std::stop_token ending) {
      return request.held == nullptr ? AnnotateAny(request, ending) : AnnotateHeld(request, ending);
    });
    return cachewarm::Annotate(status, "cannot annotate pod " + request.pod);
  };
  return TryAll({.ns = warmup.ns, .count = plan.annotations.size(), .each = annotate}, stop);
}

absl::Status Executor::AnnotateAny(const model::PodAnnotation& request,
                                   std::stop_token stop) const {
  // The uid is a precondition: the API server rejects the patch for a new pod with this name.
  const Json patch = {
      {"metadata", {{"uid", request.uid}, {"annotations", {{request.key, request.value}}}}}};
  const kube::ObjectName name{request.ns, request.pod};
  const auto answer =
      deps_.client.Do(kube::MergePatch(kube::kPods, name, patch, AsOperator()), stop);
  return !answer.ok() && IsReplaced(deps_.client, name, request.uid, stop) ? absl::OkStatus()
                                                                           : answer.status();
}

absl::Status Executor::AnnotateHeld(const model::PodAnnotation& request,
                                    std::stop_token stop) const {
  CW_ASSIGN_OR_RETURN(const Json patch,
                      gate::AnnotationPatch(*request.held, request.key, request.value));
  const auto answer = deps_.client.Do(
      kube::JsonPatch(kube::kPods, {request.ns, request.pod}, patch, AsOperator()), stop);
  return answer.ok() || !gate::IsStillHeld(deps_.client, *request.held, stop) ? absl::OkStatus()
                                                                              : answer.status();
}

absl::StatusOr<size_t> Executor::Release(const api::CacheWarmup& warmup, const model::Plan& plan,
                                         std::stop_token stop) const {
  const std::span<const model::GateRelease> all(plan.releases);
  const auto other = std::find_if(all.begin(), all.end(), [](const model::GateRelease& release) {
    return release.reason != api::reason::kReleasedForBuild;
  });
  const auto builders = static_cast<size_t>(other - all.begin());
  Released released;
  const auto first = ReleaseAll(warmup, all.first(builders), released, stop);
  const auto then = ReleaseAll(warmup, all.subspan(builders), released, stop);
  // Record the events after all patches, because writing events also loads the API server and must
  // not delay a release.
  for (const model::GateRelease* release : released.releases) {
    RecordEvent(release->event);
  }
  CW_RETURN_IF_ERROR(first.status());
  CW_RETURN_IF_ERROR(then.status());
  return *first + *then;
}

absl::StatusOr<size_t> Executor::ReleaseAll(const api::CacheWarmup& warmup,
                                            std::span<const model::GateRelease> releases,
                                            Released& released, std::stop_token stop) const {
  // A deleted warmup has no resourceVersion, because it was not read from the store. Count its
  // releases without its name: a series with the name would be created again after it was removed.
  const std::string counted = warmup.resource_version.empty() ? "" : warmup.name;
  const auto release_one = [&](size_t i) {
    const model::GateRelease& release = releases[i];
    const auto done =
        ReleaseGate({.client = deps_.client, .turns = turns_, .refusals = deps_.release_refusals},
                    release, stop);
    if (done.ok() && *done) {
      released.Add(release);
      deps_.metrics.CountRelease(warmup.ns, counted, release.reason, release.held_seconds);
      deps_.log.Info("pod released", {{"cacheWarmup", warmup.ns + "/" + warmup.name},
                                      {"pod", release.pod->meta.ns + "/" + release.pod->meta.name},
                                      {"reason", release.reason},
                                      {"heldSeconds", release.held_seconds}});
    }
    return cachewarm::Annotate(done.status(), "cannot release pod " + release.pod->meta.name);
  };
  return TryAll({.ns = warmup.ns, .count = releases.size(), .each = release_one}, stop);
}

void Executor::RecordEvent(const model::EventRequest& request) const {
  deps_.events.Record({.regarding = Regarding(request.regarding),
                       .is_warning = request.warning,
                       .reason = request.reason,
                       .action = request.action,
                       .note = request.note});
}

void Executor::Count(const api::CacheWarmup& warmup, const model::Plan& plan) const {
  const std::string& ns = warmup.ns;
  const std::string& name = warmup.name;
  for (const api::StartSample& start : plan.starts_counted) {
    if (start.start_seconds > 0) {
      deps_.metrics.start_seconds.Observe({ns, name, std::string(Name(start.result))},
                                          start.start_seconds);
    }
    if (start.compiled_after_seconds > 0) {
      deps_.metrics.compile_seconds.Observe({ns, name}, start.compiled_after_seconds);
    }
  }
  for (const api::StartSample& start : plan.engines_reported) {
    for (const api::EnginePhase phase : api::kEnginePhases) {
      if (const double seconds = SecondsOf(*start.engine, phase); seconds > 0) {
        deps_.metrics.phase_seconds.Observe(
            {ns, name, std::string(Name(phase)), std::string(Name(start.result))}, seconds);
      }
    }
  }
  for (const model::BuildOutcome& build : plan.builds_finished) {
    deps_.metrics.builds.Add({ns, name, build.gpu_type, build.reason});
    deps_.metrics.build_seconds.Observe({ns, name, build.gpu_type}, build.seconds);
  }
  for (const api::HarvestStatus& harvest : plan.status.harvests) {
    if (HasHarvestEnded(harvest, warmup.status.harvests)) {
      deps_.metrics.harvests.Add({ns, name, HarvestResult(harvest.reason)});
    }
  }
}

}  // namespace cachewarm::apply
