// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/injection.h"

// Renders the builder Job of a key: its only pod compiles the cache if no pod of the workload can
// be the builder. Pure.
namespace cachewarm::render {

struct BuilderJobSpec {
  const api::CacheWarmup& warmup;
  const codec::Json& pod_template;  // PodTemplateSpec of the workload, after ApplyOverrides()
  std::string key;
  int attempt = 1;
  CacheMount mount;
  // Nodes with the key's GPU type and CPU class. The pod runs only on these.
  std::vector<std::string> hostnames;
  // Keys of labels that the pod of the Job does not get, because Services, PDBs or the workload
  // select by them.
  std::set<std::string> label_keys;
  std::string priority_class;  // empty: that of the pod template
  // Set for a Job that proves the bundle of the attempt: variables that make the engine exit
  // instead of compiling. They replace those of the pod template.
  std::vector<api::EnvVar> strict_env;
};

// Returns "<warmup>-<key8>-<attempt>" as a DNS label. Truncates the warmup's name so that the label
// has at most 63 bytes.
std::string BuilderJobName(std::string_view warmup, std::string_view key, int attempt);

// Returns the name of the Job that proves the bundle of that attempt, in the same form, with the
// suffix "-proof".
std::string ProofJobName(std::string_view warmup, std::string_view key, int attempt);

// Returns the value of the label kBuilderKeyLabel: the first 32 digits of the key (label values
// have at most 63 bytes).
std::string BuilderKeyLabelValue(std::string_view key);

// Returns a batch/v1 Job with one pod that is never restarted or retried: a builder Job, or a proof
// Job if `strict_env` is set. Sets no
// activeDeadlineSeconds, because that deadline would include the time that the pod is pending. Adds
// a readiness gate whose condition is never set, so that the pod gets no traffic.
codec::Json BuilderJob(const BuilderJobSpec& spec);

}  // namespace cachewarm::render
