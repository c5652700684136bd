// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/wishes.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

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

kube::WriteOptions AsWisher() {
  return {.field_manager = std::string(api::kWishManager)};
}

}  // namespace

absl::StatusOr<kube::Outcome> Wishes::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const observe::WorkloadKey parsed, observe::WorkloadKey::Parse(key));
  const auto subject = WishSubjectOf(world_, parsed);
  if (!subject.has_value()) {
    // What it owned is the garbage collector's.
    Forget(key);
    return kube::Outcome{};
  }
  auto outcome = Advance(*subject, key, stop);
  if (absl::IsAlreadyExists(outcome.status()) || absl::IsAborted(outcome.status()) ||
      absl::IsNotFound(outcome.status())) {
    return kube::Outcome{.requeue_after = kFollow};
  }
  if (absl::IsInvalidArgument(outcome.status())) {
    TellProblems(subject->told, key,
                 {{.is_warning = true,
                   .reason = api::reason::kAnnotationRefused,
                   .text = "the API server refuses the CacheWarmup that the annotations ask for: " +
                           Message(outcome.status())}});
    return kube::Outcome{.requeue_after = kRefusedRetry};
  }
  return outcome;
}

absl::StatusOr<kube::Outcome> Wishes::Advance(const WishSubject& subject, const std::string& key,
                                              std::stop_token stop) {
  wishes::Asked asked = subject.asked;
  kube::Object present = world_.warmups.store().Get({.ns = asked.ns, .name = asked.warmup});
  for (int i = 0; i < kStepsAtOnce; ++i) {
    asked.now = means_.clock.Now();
    asked.present = present.get();
    wishes::Verdict verdict = wishes::Decide(asked);
    if (verdict.step == Step::kNothing) {
      std::copy(subject.problems.begin(), subject.problems.end(),
                std::back_inserter(verdict.problems));
      TellProblems(subject.told, key, verdict.problems);
      return kube::Outcome{.requeue_after = verdict.look_again};
    }
    CW_ASSIGN_OR_RETURN(present, Take(verdict, present, stop));
    Tell(subject.told, verdict.news);
    if (verdict.step == Step::kDelete) {
      break;
    }
  }
  return kube::Outcome{};
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

void Wishes::Tell(const kube::Object& told, const std::vector<wishes::Note>& notes) {
  for (const wishes::Note& note : notes) {
    means_.events.Record({.regarding = told,
                          .is_warning = note.is_warning,
                          .reason = std::string(note.reason),
                          .action = "Warm",
                          .note = note.text});
    means_.log.Info("workload told of its warmup", {{"kind", kube::TextAt(*told, {"kind"})},
                                                    {"name", kube::NameOf(*told).ToString()},
                                                    {"reason", note.reason},
                                                    {"note", note.text}});
  }
}

void Wishes::TellProblems(const kube::Object& told, const std::string& key,
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
  Tell(told, fresh);
}

void Wishes::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  told_.erase(key);
}

}  // namespace cachewarm::controllers
