// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/next_step.h"

#include "fmt/format.h"
#include "lib/api/annotations.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/codec/json_path.h"
#include "lib/kube/core/object.h"
#include "operator/annotations/desired_warmup.h"
#include "operator/annotations/retention.h"

namespace cachewarm::annotations {
namespace {

using codec::Json;
namespace reason = api::reason;

enum class Requested { kYes, kNo, kInvalid };

struct WarmAnnotation {
  Requested requested = Requested::kNo;
  std::string problem;  // set if `requested` is kInvalid
};

WarmAnnotation ReadWarmAnnotation(const AnnotationRequest& request) {
  const auto found = request.annotations.find(std::string(api::kWarmAnnotation));
  if (found == request.annotations.end()) {
    return {.requested = request.namespace_opted_in && request.accelerator ? Requested::kYes
                                                                           : Requested::kNo};
  }
  if (found->second == "true") {
    return {.requested = Requested::kYes};
  }
  if (found->second == "false") {
    return {.requested = Requested::kNo};
  }
  return {.requested = Requested::kInvalid,
          .problem = fmt::format(
              "annotation {}: invalid value \"{}\"; set it to true or false, or remove it",
              api::kWarmAnnotation, found->second.substr(0, 80))};
}

bool HasWarmAnnotation(const AnnotationRequest& request) {
  return request.annotations.contains(std::string(api::kWarmAnnotation));
}

// True if the CacheWarmup outlives the Job of this request.
bool IsRetained(const AnnotationRequest& request) {
  return request.present != nullptr && request.kind == "Job" &&
         JobOf(*request.present) == request.name;
}

bool IsOwned(const AnnotationRequest& request) {
  const kube::Owner owner = kube::ControllerOf(*request.present);
  return (!request.uid.empty() && owner.uid == request.uid) || IsRetained(request);
}

// True if the CacheWarmup belongs to a deleted workload of the same name. The garbage collector
// deletes such a CacheWarmup.
bool IsOrphan(const AnnotationRequest& request) {
  const kube::Owner owner = kube::ControllerOf(*request.present);
  return owner.kind == request.kind && owner.name == request.name && owner.uid != request.uid;
}

Json AnnotationsPatch(const Json& present, Json annotations) {
  return {{"metadata",
           {{"resourceVersion", kube::ResourceVersionOf(present)},
            {"annotations", std::move(annotations)}}}};
}

// Returns a merge patch of annotations that removes the times of removal and expiry which the
// CacheWarmup has; an empty object if it has none.
Json DeletionTimesToRemove(const Json& present) {
  Json out = Json::object();
  for (const std::string_view each :
       {api::kRemovalRequestedAtAnnotation, api::kExpiresAtAnnotation}) {
    if (codec::At(present, {"metadata", "annotations", each}) != nullptr) {
      out[std::string(each)] = nullptr;
    }
  }
  return out;
}

std::vector<WorkloadNote> PresetProblems(const Json& spec) {
  std::vector<WorkloadNote> problems;
  const Json* entries = codec::At(spec, {"caches"});
  for (const Json& entry : entries == nullptr ? Json::array() : *entries) {
    if (const absl::Status known = caches::CheckPresetName(codec::TextAt(entry, {"name"}));
        !known.ok()) {
      problems.push_back({.is_warning = true,
                          .reason = reason::kInvalidAnnotation,
                          .text = fmt::format("annotation cachewarm.io/caches: {}; remove this "
                                              "name, or create a CacheWarmup that defines "
                                              "the cache with env, path and include",
                                              Message(known))});
    }
  }
  return problems;
}

std::vector<WorkloadNote> Problems(const api::AnnotatedSpec& requested) {
  std::vector<WorkloadNote> problems;
  for (const std::string& text : requested.problems) {
    problems.push_back({.is_warning = true, .reason = reason::kInvalidAnnotation, .text = text});
  }
  for (WorkloadNote& note : PresetProblems(requested.spec)) {
    problems.push_back(std::move(note));
  }
  return problems;
}

WorkloadNote Warning(std::string_view reason, std::string text) {
  return {.is_warning = true, .reason = reason, .text = std::move(text)};
}

// Creates the CacheWarmup without the spec fields from annotations; the apply that follows adds
// them. If the create wrote these fields, its entry in managedFields would own them too, so that a
// later apply without them could not remove them.
NextStep Create(const AnnotationRequest& request) {
  if (!request.served_by.empty()) {
    if (!HasWarmAnnotation(request)) {
      return {};
    }
    return {.problems = {Warning(reason::kAlreadyTargeted,
                                 fmt::format("CacheWarmup {} already targets this workload; delete "
                                             "that CacheWarmup or remove the annotation {}",
                                             request.served_by, api::kWarmAnnotation))}};
  }
  return {
      .step = Step::kCreate,
      .object = DesiredWarmup(request, Json::object(), ""),
      .events = {{.reason = reason::kWarmupCreated,
                  .text = fmt::format(
                      "created CacheWarmup {}; new pods start warm, running pods are not changed",
                      request.warmup)}}};
}

NextStep NameConflict(const AnnotationRequest& request) {
  if (IsOrphan(request)) {
    return {};  // the deletion of the orphan triggers another reconcile
  }
  return {.problems = {
              Warning(reason::kWarmupNameTaken,
                      fmt::format("cannot create CacheWarmup {}: one with this name exists and is "
                                  "not owned by this workload; delete that CacheWarmup, or create "
                                  "one with another name for this workload",
                                  request.warmup))}};
}

// Creates or updates the CacheWarmup of a workload that requests a warmup.
NextStep Ensure(const AnnotationRequest& request) {
  const api::AnnotatedSpec requested = api::ReadAnnotatedSpec(request.annotations);
  NextStep out;
  out.problems = Problems(requested);
  if (request.present != nullptr && !IsOwned(request)) {
    NextStep conflict = NameConflict(request);
    std::move(conflict.problems.begin(), conflict.problems.end(), std::back_inserter(out.problems));
    return out;
  }
  if (Json times =
          request.present == nullptr ? Json::object() : DeletionTimesToRemove(*request.present);
      !times.empty()) {
    out.step = Step::kPatch;
    out.object = AnnotationsPatch(*request.present, std::move(times));
    return out;
  }
  if (!out.problems.empty()) {
    return out;
  }
  if (request.present == nullptr) {
    return request.ended ? NextStep{} : Create(request);
  }
  Json desired = DesiredWarmup(request, requested.spec, kube::UidOf(*request.present));
  if (!IsUpToDate(*request.present, desired)) {
    out.step = Step::kApply;
    out.object = std::move(desired);
  }
  return out;
}

NextStep MarkForRemoval(const AnnotationRequest& request) {
  const std::string due = FormatTime(request.now + kRemovalGrace);
  Json time = Json::object();
  time[std::string(api::kRemovalRequestedAtAnnotation)] = FormatTime(request.now);
  return {.step = Step::kPatch,
          .object = AnnotationsPatch(*request.present, std::move(time)),
          .events = {{.reason = reason::kAnnotationRemoved,
                      .text = fmt::format(
                          "no annotation or namespace label requests a warmup any more; "
                          "CacheWarmup {} will be deleted at {} unless {}=true is set again",
                          request.warmup, due, api::kWarmAnnotation)}},
          .requeue_after = kRemovalGrace};
}

// Deletes the CacheWarmup of a workload that no longer requests a warmup, after the grace period.
NextStep Remove(const AnnotationRequest& request) {
  // A CacheWarmup without kRequestedSpecAnnotation was created by a user, so it is not deleted even
  // if the workload owns it.
  if (request.present == nullptr || !IsOwned(request) ||
      codec::TextAt(*request.present, {"metadata", "annotations", api::kRequestedSpecAnnotation})
          .empty()) {
    return {};
  }
  const auto since = RemovalRequestedTime(*request.present, request.now);
  if (!since.has_value()) {
    return MarkForRemoval(request);
  }
  const WallTime due = *since + kRemovalGrace;
  if (request.now < due) {
    return {.requeue_after = due - request.now};
  }
  return {.step = Step::kDelete,
          .events = {{.reason = reason::kWarmupDeleted,
                      .text = fmt::format("deleted CacheWarmup {}: not requested since {}",
                                          request.warmup, FormatTime(*since))}}};
}

}  // namespace

NextStep FindNextStep(const AnnotationRequest& request) {
  if (request.is_child) {
    return {};
  }
  const WarmAnnotation annotation = ReadWarmAnnotation(request);
  switch (annotation.requested) {
    case Requested::kYes:
      return Ensure(request);
    case Requested::kNo:
      // The garbage collector deletes a CacheWarmup that an ended workload owns, with the workload.
      return request.ended && !IsRetained(request) ? NextStep{} : Remove(request);
    case Requested::kInvalid:
      break;
  }
  return {.problems = {Warning(reason::kInvalidAnnotation, annotation.problem)}};
}

}  // namespace cachewarm::annotations
