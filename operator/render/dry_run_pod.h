// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"
#include "operator/render/injection.h"

// The pods that acceptance creates with dryRun=All. Pure.
namespace cachewarm::render {

struct DryRunPodSpec {
  const api::CacheWarmup& warmup;
  const codec::Json& pod_template;
  Mount mount;
  bool gate = true;
};

struct DryRunPods {
  std::shared_ptr<const codec::Json> unmodified;  // annotated so that our policy leaves it alone
  std::shared_ptr<const codec::Json> injected;    // as the policy would make it
};

DryRunPods MakeDryRunPods(const DryRunPodSpec& spec);

// A PodTemplateSpec from a pod that runs: what the API server, kubelet's admission and we have
// added is taken out again. For warmups that have only a selector. `uid` is the warmup's.
codec::Json TemplateOf(const codec::Json& pod, const std::string& uid);

}  // namespace cachewarm::render
