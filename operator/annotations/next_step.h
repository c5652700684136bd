// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/codec/json_value.h"

// Turns a workload's annotations and its namespace's label into a CacheWarmup. Pure: takes the
// workload and its present CacheWarmup, returns one step.
namespace cachewarm::annotations {

// Time between the removal of the annotation and the deletion of the CacheWarmup. Needed because
// tools that manage workloads (Argo, Helm, controllers) may remove annotations and restore them.
inline constexpr Duration kRemovalGrace{600'000};

// One workload and its CacheWarmup at one moment.
struct AnnotationRequest {
  WallTime now{};
  std::string warmup;  // name of the CacheWarmup of this workload
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string ns_uid;  // uid of the namespace
  std::string name;
  std::string uid;
  std::map<std::string, std::string> annotations;
  bool accelerator = false;         // the workload's pods request an accelerator
  bool namespace_opted_in = false;  // the namespace has the label cachewarm.io/warm=true
  // The workload is owned by another supported workload, or is a builder Job. It never gets its own
  // CacheWarmup.
  bool is_child = false;
  // The workload is being deleted or is a finished Job. No CacheWarmup is created for it.
  bool ended = false;
  // The CacheWarmup with the name `warmup`; null if none exists.
  const codec::Json* present = nullptr;
  // Name of another CacheWarmup that targets this workload; empty if none exists.
  std::string served_by;
};

enum class Step {
  kNothing,
  kCreate,  // create `object`; on ALREADY_EXISTS, decide again
  kApply,   // server-side apply of `object`, field manager api::kAnnotationsManager
  kPatch,   // send merge patch `object`; it fails if `present` has changed meanwhile
  kDelete,  // delete `present` if its resourceVersion is unchanged
};

// An event for the workload.
struct WorkloadNote {
  bool is_warning = false;
  std::string_view reason;  // from lib/api/reasons.h
  std::string text;
};

struct NextStep {
  Step step = Step::kNothing;
  codec::Json object;
  std::vector<WorkloadNote> events;    // record these after the step has succeeded
  std::vector<WorkloadNote> problems;  // current problems; record each when it first appears
  std::optional<Duration> requeue_after;
};

// Returns the next step. Deterministic. If nothing else changes, returns kNothing after a finite
// number of successful steps.
//  - Creates a CacheWarmup only if the workload requests one and all its annotations are valid.
//    While an annotation is invalid, an existing CacheWarmup keeps its spec.
//  - Changes or deletes only a CacheWarmup that the workload owns (ownerReferences), or that was
//    created for an earlier Job of the same name (retention.h).
//  - The annotation cachewarm.io/warm overrides the namespace's label. While its value is neither
//    true nor false, nothing is changed.
NextStep FindNextStep(const AnnotationRequest& request);

}  // namespace cachewarm::annotations
