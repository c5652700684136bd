// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/injection.h"

// The Job whose one pod is the builder of a key, where the workload has no pod to elect. Pure.
namespace cachewarm::render {

struct BuilderJobSpec {
  const api::CacheWarmup& warmup;
  const codec::Json& pod_template;  // PodTemplateSpec of the workload, WithOverrides()
  std::string key;
  int attempt = 1;
  Mount mount;
  std::vector<std::string> hostnames;  // nodes of the key's target; the pod may run only there
  std::set<std::string> label_keys;    // that Services, PDBs and the workload select by
  std::string priority_class;
};

// "<warmup>-<key8>-<attempt>", the warmup's part cut so that it is a DNS label of at most 63 bytes.
std::string BuilderJobName(std::string_view warmup, std::string_view key, int attempt);

// What the label kBuilderKeyLabel holds: the first 32 digits of the key (a label has 63 bytes).
std::string BuilderKeyLabelValue(std::string_view key);

// batch/v1 Job: one pod, never restarted, never retried, no activeDeadlineSeconds (it would count
// the time spent pending), a readiness gate that nobody sets, so that no traffic comes.
codec::Json BuilderJob(const BuilderJobSpec& spec);

// The pod template with compile.overrides (null: none) merged in. INVALID_ARGUMENT, naming the
// field and what to do, for a patch that cannot be merged, touches more than labels, annotations
// and spec, changes name, image or user of `container` (the key would not be that of its cache), or
// lets the copy do what the workload's pods may not (rights.h).
absl::StatusOr<codec::Json> WithOverrides(const codec::Json& pod_template,
                                          const codec::Json* overrides, std::string_view container);

// Why a copy of this template would have side effects, naming field and remedy; "" when it has
// none: hostNetwork, hostPort, claim templates, writable claims.
std::string CopyRefusal(const codec::Json& pod_template);

// A copy mounts a claim that pods of the workload mount too.
bool SharesVolumeClaim(const codec::Json& pod_template);

}  // namespace cachewarm::render
