// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/codec/json_value.h"

// What a workload's annotations, or the label of its namespace, ask for. Pure: the workload and its
// CacheWarmup in, what is to be done about the CacheWarmup out.
namespace cachewarm::annotations {

// How long nobody may ask for it before a CacheWarmup is deleted: those who own workloads (Argo,
// Helm, controllers) strip annotations and put them back.
inline constexpr Duration kRemovalGrace{600'000};

// One workload and what there is for it at one moment. Pods that no workload stands for count as
// one: it has a `selector`, and their namespace owns the CacheWarmup.
struct AnnotationRequest {
  WallTime now{};
  std::string warmup;  // the name of its CacheWarmup
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  std::map<std::string, std::string> selector;
  std::map<std::string, std::string> annotations;
  bool accelerator = false;         // its pods ask for one
  bool namespace_opted_in = false;  // the label cachewarm.io/warm=true of the namespace
  // It cannot be warmed by itself: made by another workload that we know, or by us.
  bool is_child = false;
  bool ended =
      false;  // it is being deleted, or is a Job that has ended: nothing new is made for it
  // The CacheWarmup of that name; null when there is none.
  const codec::Json* present = nullptr;
  // Another CacheWarmup that is about this workload, not made by us; empty: none.
  std::string served_by;
  Duration grace = kRemovalGrace;  // how long nobody may ask for it
};

enum class Step {
  kNothing,
  kCreate,  // `object` is new; ALREADY_EXISTS: somebody was faster, look again
  kApply,   // `object` by server-side apply, of api::kAnnotationsManager
  kPatch,   // `object` is a merge patch, bound to the version that was looked at
  kDelete,  // the one that was looked at, if it did not change since
};

// For people who look at the workload.
struct Note {
  bool is_warning = false;
  std::string_view reason;  // of lib/api/reasons.h
  std::string text;
};

struct Decision {
  Step step = Step::kNothing;
  codec::Json object;
  std::vector<Note> events;    // of this step: to be told when it was taken
  std::vector<Note> problems;  // as long as they last: to be told when they are new
  std::optional<Duration> requeue_after;
};

// Deterministic; taking the step that it returns and asking again returns kNothing in the end.
//  - A CacheWarmup is made only for a workload that asks and whose annotations are all understood;
//    one that is there keeps its spec while they are not.
//  - Only one that the workload owns (ownerReferences) is ever changed or deleted.
//  - "cachewarm.io/warm" decides ended the namespace's label. A value that is neither true nor
//  false
//    changes nothing.
Decision Decide(const AnnotationRequest& request);

}  // namespace cachewarm::annotations
