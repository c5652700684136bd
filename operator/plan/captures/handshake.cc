// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/captures/handshake.h"

#include <fmt/format.h>

#include "lib/fingerprint/key.h"
#include "operator/plan/captures/ranks.h"

namespace cachewarm::plan {

CaptureHandshake FindCaptureHandshake(const Context& context, const api::BuilderStatus& builder,
                                      const CaptureTarget& target) {
  // The id includes key and attempt, so that an answer about the same pod but another key or
  // attempt does not match.
  CaptureHandshake handshake{.pod = FindPod(context, target.pod_uid),
                             .id = fmt::format("{}-{}-{}", target.pod_uid,
                                               fingerprint::Key8(builder.key), builder.attempt)};
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    if (context.nodes[i].view->node->meta.name == target.node) {
      handshake.node_index = i;
      handshake.node = &context.nodes[i];
    }
  }
  if (handshake.node == nullptr || handshake.node->cache == nullptr) {
    return handshake;
  }
  for (const api::CaptureRequest& request : handshake.node->cache->spec.captures) {
    if (request.id == handshake.id && request.warmup_uid == context.uid() &&
        request.key == builder.key) {
      handshake.request = &request;
    }
  }
  for (const api::CaptureStatus& status : handshake.node->cache->status.captures) {
    if (status.id == handshake.id && handshake.request != nullptr) {
      handshake.answer = &status;
    }
  }
  return handshake;
}

api::CaptureRequest MakeCaptureRequest(const Context& context, const CaptureHandshake& handshake,
                                       const api::BuilderStatus& builder) {
  const PodView& pod = *handshake.pod;
  return {.id = handshake.id,
          .warmup_uid = context.uid(),
          .pod_uid = pod.pod->meta.uid,
          .run_as = pod.run_as,
          .key = builder.key,
          .factors = {.gpu_type = builder.gpu_type,
                      .cpu_class = builder.cpu_class,
                      .image = pod.factors.image,
                      .devices = pod.factors.devices,
                      .container = pod.factors.container},
          .settle_seconds = context.in.warmup.spec.compile.settle_seconds,
          .started_time = pod.container->started_time,
          .ready_time = ReadyInGroup(context, pod, builder),
          .base_digest = builder.captured ? builder.captured->digest : Digest(),
          .grouped = IsGrouped(context, builder)};
}

bool IsPushed(const Context& context, const CaptureHandshake& handshake,
              const api::BuilderStatus& builder) {
  return handshake.answer != nullptr && handshake.answer->state == api::CaptureState::kPushed &&
         !handshake.answer->digest.empty() &&
         ReadyInGroup(context, *handshake.pod, builder) != WallTime{};
}

}  // namespace cachewarm::plan
