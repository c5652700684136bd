// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/annotation_requests.h"

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

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

}  // namespace

absl::StatusOr<kube::Outcome> AnnotationRequests::Reconcile(const std::string& key,
                                                            std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const observe::WorkloadKey parsed, observe::WorkloadKey::Parse(key));
  const auto subject = FindAnnotationSubject(cluster_, parsed);
  if (!subject.has_value()) {
    // Nothing to do: the garbage collector deletes the CacheWarmup that the workload owned.
    Forget(key);
    return kube::Outcome{};
  }
  auto outcome = Advance(*subject, key, stop);
  if (absl::IsAlreadyExists(outcome.status()) || absl::IsAborted(outcome.status()) ||
      absl::IsNotFound(outcome.status())) {
    return kube::Outcome{.requeue_after = kConflictRetry};
  }
  if (absl::IsInvalidArgument(outcome.status())) {
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
