// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/injection.h"

// Renders the two pods of the admission dry run, which are created with dryRun=All. The dry run
// shows whether injection makes the API server reject the workload's pods. Pure.
namespace cachewarm::render {

struct DryRunPodSpec {
  const api::CacheWarmup& warmup;
  const codec::Json& pod_template;
  CacheMount mount;
  bool gate = true;
};

struct DryRunPods {
  std::shared_ptr<const codec::Json> unmodified;  // annotated so that the admission policy skips it
  std::shared_ptr<const codec::Json> injected;    // as the admission policy would change it
};

DryRunPods MakeDryRunPods(const DryRunPodSpec& spec);

// Converts a running pod to a PodTemplateSpec: removes the fields that the API server, the
// scheduler and cachewarm added. For warmups that have only a selector. `uid` is the uid of the
// warmup, by which the path of the cache volume is recognized.
codec::Json TemplateOf(const codec::Json& pod, const std::string& uid);

}  // namespace cachewarm::render
