// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/annotation_requests.h"

#include <string>
#include <vector>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/annotations/retention.h"
#include "operator/annotations/warmup_name.h"

namespace cachewarm::controllers {
namespace {

using annotations::Step;
using codec::Json;

// Maximum number of steps in one reconcile: a create, the apply that completes the new object, and
// Step::kNothing, which ends the reconcile.
constexpr int kStepsAtOnce = 3;
// Retry interval after a conflict with another writer. By the time of the retry, the store has that
// writer's change.
constexpr Duration kConflictRetry{500};
// Retry interval after the API server rejected a request. A retry rarely helps until a user changes
// something.
constexpr Duration kInvalidAnnotationRetry{300'000};

kube::WriteOptions AsAnnotationWriter() {
  return {.field_manager = std::string(api::kAnnotationsManager)};
}

// Returns the CacheWarmups of deleted Jobs of the namespace, except `own`. A copy that a user made
// under another name is not one of them.
std::vector<annotations::RetainedWarmup> OtherRetained(const observe::ClusterCache& cluster,
                                                       const kube::ObjectName& own) {
  std::vector<annotations::RetainedWarmup> others;
  for (const kube::CachedObjectPtr& object : cluster.warmups.store().ListNamespace(own.ns)) {
    if (object->own_name() == own.name ||
        object->value().TextAt({"metadata", "annotations", api::kExpiresAtAnnotation}).empty()) {
      continue;
    }
    const kube::Object warmup = object->Unpack();
    const std::string job = annotations::JobOf(*warmup);
    const auto expires = annotations::ExpiryTime(*warmup);
    if (!job.empty() && annotations::WarmupName(job) == object->own_name() && expires.has_value()) {
      others.push_back({.name = std::string(object->own_name()), .expires = *expires});
    }
  }
  return others;
}

}  // namespace

absl::StatusOr<kube::Outcome> AnnotationRequests::Reconcile(const std::string& key,
                                                            std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const observe::WorkloadKey parsed, observe::WorkloadKey::Parse(key));
  const auto subject = FindAnnotationSubject(cluster_, parsed);
  if (!subject.has_value()) {
    Forget(key);
  }
  auto outcome = subject.has_value() ? Advance(*subject, key, stop) : RetainOrDelete(parsed, stop);
  if (absl::IsAlreadyExists(outcome.status()) || absl::IsAborted(outcome.status()) ||
      absl::IsNotFound(outcome.status())) {
    return kube::Outcome{.requeue_after = kConflictRetry};
  }
  if (subject.has_value() && absl::IsInvalidArgument(outcome.status())) {
    RecordNewProblems(
        subject->regarding, key,
        {{.is_warning = true,
          .reason = api::reason::kInvalidAnnotation,
          .text = "the API server rejected the CacheWarmup requested by annotations: " +
                  Message(outcome.status())}});
    return kube::Outcome{.requeue_after = kInvalidAnnotationRetry};
  }
  return outcome;
}

absl::StatusOr<kube::Outcome> AnnotationRequests::Advance(const AnnotationSubject& subject,
                                                          const std::string& key,
                                                          std::stop_token stop) {
  annotations::AnnotationRequest request = subject.request;
  kube::Object present = cluster_.warmups.store().Get({.ns = request.ns, .name = request.warmup});
  for (int i = 0; i < kStepsAtOnce; ++i) {
    request.now = deps_.clock.Now();
    request.present = present.get();
    const annotations::NextStep decision = annotations::FindNextStep(request);
    if (decision.step == Step::kNothing) {
      RecordNewProblems(subject.regarding, key, decision.problems);
      return kube::Outcome{.requeue_after = decision.requeue_after};
    }
    CW_ASSIGN_OR_RETURN(present, ExecuteStep(decision, present, stop));
    RecordEvents(subject.regarding, decision.events);
    if (decision.step == Step::kDelete) {
      break;
    }
  }
  return kube::Outcome{};
}

absl::StatusOr<kube::Outcome> AnnotationRequests::RetainOrDelete(
    const observe::WorkloadKey& workload, std::stop_token stop) {
  if (workload.kind != "Job") {
    return kube::Outcome{};
  }
  const kube::ObjectName name{.ns = workload.name.ns,
                              .name = annotations::WarmupName(workload.name.name)};
  const kube::Object present = cluster_.warmups.store().Get(name);
  const annotations::NextStep decision =
      annotations::FindRetentionStep({.now = deps_.clock.Now(),
                                      .job = workload.name.name,
                                      .present = present.get(),
                                      .others = OtherRetained(cluster_, name)});
  if (decision.step != Step::kNothing) {
    CW_RETURN_IF_ERROR(ExecuteStep(decision, present, stop).status());
    RecordEvents(present, decision.events);
  }
  return kube::Outcome{.requeue_after = decision.requeue_after};
}

absl::StatusOr<kube::Object> AnnotationRequests::ExecuteStep(const annotations::NextStep& decision,
                                                             const kube::Object& present,
                                                             std::stop_token stop) {
  kube::Request request;
  if (decision.step == Step::kCreate) {
    request = kube::Create(kube::kCacheWarmups, decision.object, AsAnnotationWriter());
  } else if (decision.step == Step::kApply) {
    request = kube::Apply(kube::kCacheWarmups, decision.object, AsAnnotationWriter());
  } else if (decision.step == Step::kPatch) {
    request = kube::MergePatch(kube::kCacheWarmups, kube::NameOf(*present), decision.object,
                               AsAnnotationWriter());
  } else {
    request = kube::Delete(
        kube::kCacheWarmups, kube::NameOf(*present),
        {.uid = kube::UidOf(*present), .resource_version = kube::ResourceVersionOf(*present)});
  }
  absl::StatusOr<Json> answer = deps_.client.Do(request, stop);
  if (!answer.ok()) {
    return answer.status();
  }
  return decision.step == Step::kDelete ? nullptr
                                        : std::make_shared<const Json>(*std::move(answer));
}

void AnnotationRequests::RecordEvents(const kube::Object& regarding,
                                      const std::vector<annotations::WorkloadNote>& notes) {
  for (const annotations::WorkloadNote& note : notes) {
    deps_.events.Record({.regarding = regarding,
                         .is_warning = note.is_warning,
                         .reason = std::string(note.reason),
                         .action = "Warm",
                         .note = note.text});
    deps_.log.Info("event recorded for workload", {{"kind", codec::TextAt(*regarding, {"kind"})},
                                                   {"name", kube::NameOf(*regarding).ToString()},
                                                   {"reason", note.reason},
                                                   {"note", note.text}});
  }
}

void AnnotationRequests::RecordNewProblems(const kube::Object& regarding, const std::string& key,
                                           const std::vector<annotations::WorkloadNote>& problems) {
  std::vector<annotations::WorkloadNote> fresh;
  {
    std::lock_guard lock(mutex_);
    std::set<std::string> now;
    for (const annotations::WorkloadNote& note : problems) {
      now.insert(note.text);
      if (!reported_[key].contains(note.text)) {
        fresh.push_back(note);
      }
    }
    reported_[key] = std::move(now);
    if (reported_[key].empty()) {
      reported_.erase(key);
    }
  }
  RecordEvents(regarding, fresh);
}

void AnnotationRequests::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  reported_.erase(key);
}

}  // namespace cachewarm::controllers
