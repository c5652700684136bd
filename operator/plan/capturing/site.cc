// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/capturing/site.h"

#include <fmt/format.h>

#include "lib/fingerprint/key.h"
#include "operator/plan/capturing/ranks.h"

namespace cachewarm::plan {

Site FindSite(const Round& round, const api::BuilderStatus& builder, const Captive& captive) {
  // The answer to a failed attempt, or about another key, must not be taken for that of this one by
  // the same pod.
  Site site{.pod = FindPod(round, captive.pod_uid),
            .id = fmt::format("{}-{}-{}", captive.pod_uid, fingerprint::Key8(builder.key),
                              builder.attempt)};
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    if (round.nodes[i].view->node->meta.name == captive.node) {
      site.node_index = i;
      site.node = &round.nodes[i];
    }
  }
  if (site.node == nullptr || site.node->cache == nullptr) {
    return site;
  }
  for (const api::CaptureRequest& request : site.node->cache->spec.captures) {
    if (request.id == site.id && request.warmup_uid == round.uid() && request.key == builder.key) {
      site.asked = &request;
    }
  }
  for (const api::CaptureStatus& status : site.node->cache->status.captures) {
    if (status.id == site.id && site.asked != nullptr) {
      site.answer = &status;
    }
  }
  return site;
}

api::CaptureRequest Ask(const Round& round, const Site& site, const api::BuilderStatus& builder) {
  const PodView& pod = *site.pod;
  return {.id = site.id,
          .warmup_uid = round.uid(),
          .pod_uid = pod.pod->meta.uid,
          .run_as = pod.run_as,
          .key = builder.key,
          .factors = {.gpu_type = builder.gpu_type,
                      .cpu_class = builder.cpu_class,
                      .image = pod.factors.image,
                      .devices = pod.factors.devices,
                      .container = pod.factors.container},
          .settle_seconds = round.in.warmup.spec.compile.settle_seconds,
          .started_at = pod.container->started_at,
          .ready_at = ReadyInGroup(round, pod, builder),
          .keep = builder.captured ? builder.captured->digest : Digest()};
}

bool IsPushed(const Round& round, const Site& site, const api::BuilderStatus& builder) {
  return site.answer != nullptr && site.answer->state == api::CaptureState::kPushed &&
         !site.answer->digest.empty() && ReadyInGroup(round, *site.pod, builder) != WallTime{};
}

}  // namespace cachewarm::plan
