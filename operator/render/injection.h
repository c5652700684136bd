// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

// What the admission policy (manifests/admission.yaml) does to a pod, done here for builder Jobs
// and for the rehearsal; a change of either is a change of both. Pure.
namespace cachewarm::render {

// "u1000" or "image": what the container of this PodSpec runs as.
std::string RunAs(const codec::Json& pod_spec, std::string_view container);

struct Mount {
  std::string container;
  std::string host_path;  // "<root>/<ns>/<name>/<uid>/<run-as>"
  std::vector<api::EnvVar> env;
};

// Adds volume, mount and the variables that the container does not set itself. Doing it twice
// changes nothing more.
void AddMount(codec::Json& pod_spec, const Mount& mount);

// "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" with our volume added: a hostPath
// would else keep the autoscaler from ever removing the node.
void AddEvictionAnnotation(codec::Json& metadata);

// Why admission leaves this pod alone whatever the warmup, in words for people; "" when it does
// not.
std::string WhyInjectionSkipped(const codec::Json& pod, std::string_view root);

// Why a pod of this spec cannot be given our volume, naming field and remedy; "" when it can.
std::string MountConflict(const codec::Json& pod_spec, std::string_view root);

}  // namespace cachewarm::render
