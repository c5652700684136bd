// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/wishes.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/api/workload_kinds.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/wishes/name.h"
#include "operator/workloads/accelerators.h"
#include "operator/workloads/shape.h"

namespace cachewarm::controllers {
namespace {

using codec::Json;
using wishes::Step;

// A create and the apply that completes it, with a step to spare.
constexpr int kStepsAtOnce = 3;
// Somebody else made or changed it: what we look at will have followed by then.
constexpr Duration kFollow{500};
// What the API server refused will not get better by itself.
constexpr Duration kRefusedRetry{300'000};

bool IsPartOfAnother(const Json& workload) {
  const kube::Owner owner = kube::ControllerOf(workload);
  const auto& kinds = api::kWorkloadKinds;
  return kube::LabelsOf(workload).contains(std::string(api::kBuilderWarmupLabel)) ||
         std::any_of(kinds.begin(), kinds.end(), [&](const api::WorkloadKind& each) {
           return each.kind == owner.kind && each.api_version == owner.api_version;
         });
}

bool HasEnded(const Json& job) {
  const Json* conditions = kube::At(job, {"status", "conditions"});
  return kube::TextAt(job, {"kind"}) == "Job" && conditions != nullptr && conditions->is_array() &&
         std::any_of(conditions->begin(), conditions->end(), [](const Json& condition) {
           const std::string type = kube::TextAt(condition, {"type"});
           return (type == "Complete" || type == "Failed") &&
                  kube::TextAt(condition, {"status"}) == "True";
         });
}

// A Rollout may borrow its template.
bool AsksForAccelerator(const observe::World& world, const Json& workload) {
  const std::string from = workloads::ShapeOf(workload).borrows_from;
  if (from.empty()) {
    return workloads::AsksForAccelerator(workload);
  }
  const kube::Object lender =
      world.deployments.store().Get({.ns = kube::NameOf(workload).ns, .name = from});
  return lender != nullptr && workloads::AsksForAccelerator(*lender);
}

kube::WriteOptions AsWisher() {
  return {.field_manager = std::string(api::kWishManager)};
}

}  // namespace

absl::StatusOr<kube::Outcome> Wishes::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const observe::WorkloadKey parsed, observe::WorkloadKey::Parse(key));
  const kube::Store* store = world_.WorkloadStore(parsed.kind);
  const kube::Object workload = store == nullptr ? nullptr : store->Get(parsed.name);
  if (workload == nullptr) {
    // What it owned is the garbage collector's.
    Forget(key);
    return kube::Outcome{};
  }
  auto outcome = Advance(workload, key, stop);
  if (absl::IsAlreadyExists(outcome.status()) || absl::IsAborted(outcome.status()) ||
      absl::IsNotFound(outcome.status())) {
    return kube::Outcome{.requeue_after = kFollow};
  }
  if (absl::IsInvalidArgument(outcome.status())) {
    TellProblems(workload, key,
                 {{.is_warning = true,
                   .reason = api::reason::kAnnotationRefused,
                   .text = "the API server refuses the CacheWarmup that the annotations ask for: " +
                           Message(outcome.status())}});
    return kube::Outcome{.requeue_after = kRefusedRetry};
  }
  return outcome;
}

absl::StatusOr<kube::Outcome> Wishes::Advance(const kube::Object& workload, const std::string& key,
                                              std::stop_token stop) {
  const kube::ObjectName name = kube::NameOf(*workload);
  kube::Object present =
      world_.warmups.store().Get({.ns = name.ns, .name = wishes::WarmupName(name.name)});
  for (int i = 0; i < kStepsAtOnce; ++i) {
    const wishes::Verdict verdict = wishes::Decide(Look(*workload, present));
    if (verdict.step == Step::kNothing) {
      TellProblems(workload, key, verdict.problems);
      return kube::Outcome{.requeue_after = verdict.look_again};
    }
    CW_ASSIGN_OR_RETURN(present, Take(verdict, present, stop));
    Tell(workload, verdict.news);
    if (verdict.step == Step::kDelete) {
      break;
    }
  }
  return kube::Outcome{};
}

wishes::Asked Wishes::Look(const Json& workload, const kube::Object& present) const {
  const kube::ObjectName name = kube::NameOf(workload);
  const kube::Object ns = world_.namespaces.store().Get({.name = name.ns});
  wishes::Asked asked{.now = means_.clock.Now(),
                      .api_version = kube::TextAt(workload, {"apiVersion"}),
                      .kind = kube::TextAt(workload, {"kind"}),
                      .ns = name.ns,
                      .name = name.name,
                      .uid = kube::UidOf(workload),
                      .annotations = kube::AnnotationsOf(workload),
                      .is_part = IsPartOfAnother(workload),
                      .over = kube::IsDeleting(workload) || HasEnded(workload) || ns == nullptr ||
                              kube::IsDeleting(*ns),
                      .present = present.get()};
  asked.namespace_asks =
      ns != nullptr && kube::TextAt(*ns, {"metadata", "labels", api::kWarmAnnotation}) == "true";
  asked.accelerator = asked.namespace_asks && AsksForAccelerator(world_, workload);
  for (const auto& warmup : world_.warmup_views.ListNamespace(name.ns)) {
    const auto& ref = warmup->spec.workload_ref;
    if (ref.has_value() && ref->kind == asked.kind && ref->name == asked.name &&
        warmup->name != wishes::WarmupName(asked.name)) {
      asked.served_by = warmup->name;
    }
  }
  return asked;
}

absl::StatusOr<kube::Object> Wishes::Take(const wishes::Verdict& verdict,
                                          const kube::Object& present, std::stop_token stop) {
  kube::Request request;
  if (verdict.step == Step::kCreate) {
    request = kube::Create(kube::kCacheWarmups, verdict.object, AsWisher());
  } else if (verdict.step == Step::kApply) {
    request = kube::Apply(kube::kCacheWarmups, verdict.object, AsWisher());
  } else if (verdict.step == Step::kPatch) {
    request =
        kube::MergePatch(kube::kCacheWarmups, kube::NameOf(*present), verdict.object, AsWisher());
  } else {
    request = kube::Delete(
        kube::kCacheWarmups, kube::NameOf(*present),
        {.uid = kube::UidOf(*present), .resource_version = kube::ResourceVersionOf(*present)});
  }
  absl::StatusOr<Json> answer = means_.client.Do(request, stop);
  if (!answer.ok()) {
    return answer.status();
  }
  return verdict.step == Step::kDelete ? nullptr : std::make_shared<const Json>(*std::move(answer));
}

void Wishes::Tell(const kube::Object& workload, const std::vector<wishes::Note>& notes) {
  for (const wishes::Note& note : notes) {
    means_.events.Record({.regarding = workload,
                          .is_warning = note.is_warning,
                          .reason = std::string(note.reason),
                          .action = "Warm",
                          .note = note.text});
    means_.log.Info("workload told of its warmup",
                    {{"kind", kube::TextAt(*workload, {"kind"})},
                     {"workload", kube::NameOf(*workload).ToString()},
                     {"reason", note.reason},
                     {"note", note.text}});
  }
}

void Wishes::TellProblems(const kube::Object& workload, const std::string& key,
                          const std::vector<wishes::Note>& problems) {
  std::vector<wishes::Note> fresh;
  {
    std::lock_guard lock(mutex_);
    std::set<std::string> now;
    for (const wishes::Note& note : problems) {
      now.insert(note.text);
      if (!told_[key].contains(note.text)) {
        fresh.push_back(note);
      }
    }
    told_[key] = std::move(now);
    if (told_[key].empty()) {
      told_.erase(key);
    }
  }
  Tell(workload, fresh);
}

void Wishes::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  told_.erase(key);
}

}  // namespace cachewarm::controllers
