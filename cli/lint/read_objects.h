// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/lint/pod_template.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::lint {

// Selects the containers that may run an engine.
enum class Scope {
  // Containers that request an accelerator or name an engine. Of a template without such a
  // container: all, because the caller named the object.
  kNamedObject,
  // The same, but a template without such a container is left out: manifests of an application
  // also have routers, databases and Jobs.
  kManifest,
};

// Adds the pod templates of a Kubernetes object to `input`: every member "spec" that has containers
// (of a Pod, Deployment, CronJob, LeaderWorkerSet, RayCluster, JobSet, of the template of a
// CacheWarmup), and those of the items of a List. A Service is added to the Services. A member of
// an unexpected type reads as absent. Returns the number of pod templates found, also of those that
// `scope` leaves out. Errors: INVALID_ARGUMENT if `object` is no Kubernetes object.
absl::StatusOr<int> AddObject(const codec::Json& object, Scope scope, Input& input);

}  // namespace cachewarm::lint
