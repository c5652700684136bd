// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

using api::BuilderStatus;

bool FollowBuildRequests(PlanContext& context, const PodView& pod, BuilderStatus& builder) {
  const auto& requests = context.in.warmup.spec.compile.requests;
  if (builder.job.empty() || requests.empty() || builder.answered_time != WallTime{}) {
    return true;
  }
  const auto begun =
      std::find_if(context.in.build_requests.begin(), context.in.build_requests.end(),
                   [&](const BuildRequestsState& each) { return each.pod_uid == builder.pod_uid; });
  const bool has_begun = begun != context.in.build_requests.end();
  // The server in the builder's pod accepts requests once the pod's containers are ready; the pod
  // then has an IP. While the server compiles, its readiness probe may fail, so requests that have
  // begun continue even if the containers are no longer ready.
  if (!has_begun && (!pod.pod->containers_ready || pod.pod->ip.empty())) {
    return false;
  }
  if (!has_begun || !begun->ended) {
    context.out.build_requests.push_back({.pod_uid = builder.pod_uid,
                                          .pod_name = builder.pod_name,
                                          .pod_ip = pod.pod->ip,
                                          .requests = requests});
    return false;
  }
  if (!begun->failure.empty()) {
    FailBuild(context, builder, api::reason::kBuildRequestFailed, begun->failure);
    return false;
  }
  builder.answered_time = context.stamp();
  return true;
}

}  // namespace cachewarm::plan
