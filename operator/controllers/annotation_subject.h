// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "operator/annotations/next_step.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::controllers {

// A workload whose annotations are reconciled.
struct AnnotationSubject {
  kube::Object regarding;                  // the workload, which events are about
  annotations::AnnotationRequest request;  // complete except for `now` and `present`
};

// Returns the workload with this key; nullopt if it does not exist.
std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key);

}  // namespace cachewarm::controllers
