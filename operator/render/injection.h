// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

// Applies the changes of the admission policy (admission.yaml of the chart) to builder Jobs and
// dry-run pods. A change of the policy requires the same change here. Pure.
namespace cachewarm::render {

// Returns the directory name for the user that the container runs as: "u<uid>", or "image" if only
// the image sets the user.
std::string RunAs(const codec::Json& pod_spec, std::string_view container);

struct CacheMount {
  std::string container;
  std::string host_path;  // "<root>/<ns>/<name>/<uid>/<run-as>"
  std::vector<api::EnvVar> env;
};

// Sets the variables of the container. Replaces those that it sets itself.
void SetEnv(const std::vector<api::EnvVar>& variables, codec::Json& container);

// Adds the cache volume and its mount to the container. Adds each variable of `mount` that the
// container does not set itself. Idempotent.
void AddMount(codec::Json& pod_spec, const CacheMount& mount);

// Adds the name of the cache volume to the annotation
// "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes". Otherwise a pod with this
// hostPath volume would keep the autoscaler from removing its node.
void AddEvictionAnnotation(codec::Json& metadata);

}  // namespace cachewarm::render
