// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "operator/plan/builders/proof.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

using api::BuilderStatus;

bool FollowBuildRequests(const Context& context, Builds& builds, const PodView& pod,
                         BuilderStatus& builder) {
  const auto& requests = context.in.warmup.spec.compile.requests;
  WallTime& answered = builder.proof ? builder.proof->answered_time : builder.answered_time;
  const std::string& uid = pod.pod->meta.uid;
  if (builder.job.empty() || requests.empty() || answered != WallTime{}) {
    return true;
  }
  const auto begun =
      std::find_if(context.in.build_requests.begin(), context.in.build_requests.end(),
                   [&](const BuildRequestsState& each) { return each.pod_uid == uid; });
  const bool has_begun = begun != context.in.build_requests.end();
  // The server in the builder's pod accepts requests once the pod's containers are ready; the pod
  // then has an IP. While the server compiles, its readiness probe may fail, so requests that have
  // begun continue even if the containers are no longer ready.
  if (!has_begun && (!pod.pod->containers_ready || pod.pod->ip.empty())) {
    return false;
  }
  if (!has_begun || !begun->ended) {
    builds.requests.push_back({.pod_uid = uid,
                               .pod_name = pod.pod->meta.name,
                               .pod_ip = pod.pod->ip,
                               .requests = requests});
    return false;
  }
  if (!begun->failure.empty()) {
    if (builder.proof) {
      RefuseBundle(context, builds, builder,
                   fmt::format("pod {}: {}", pod.pod->meta.name, begun->failure));
    } else {
      FailBuild(context, builds.effects, builder,
                {.event = BuildEvent::kRequestFailed, .message = begun->failure});
    }
    return false;
  }
  answered = context.stamp();
  return true;
}

}  // namespace cachewarm::plan
