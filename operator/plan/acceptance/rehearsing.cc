// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/render/rehearsal.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kRehearseEvery = std::chrono::minutes(10);

RehearsalWish MakeRehearsal(const Round& round) {
  const api::CacheWarmup& warmup = round.in.warmup;
  const TemplateView& shape = round.pod_template;
  render::RehearsalPods pods =
      render::MakeRehearsalPods({.warmup = warmup,
                                 .pod_template = *shape.pod_template,
                                 .mount = {.container = shape.factors.container,
                                           .host_path = HostPath(round, shape.run_as),
                                           .env = round.env},
                                 .gate = round.may_hold()});
  std::string text = codec::DumpJson(*pods.injected);
  for (const auto& [key, value] : round.in.namespace_labels) {
    text += fmt::format("\n{}={}", key, value);
  }
  return {.fingerprint = DigestOf(text).Short(),
          .as_is = std::move(pods.as_is),
          .injected = std::move(pods.injected)};
}

}  // namespace

Refusal UnansweredRehearsal(Round& round) {
  RehearsalWish wish = MakeRehearsal(round);
  const Rehearsal& last = round.in.rehearsal;
  const bool answered = last.fingerprint == wish.fingerprint;
  const WallTime next = last.time + kRehearseEvery;
  if (answered && round.in.now < next) {
    WakeAt(round, next);
    return std::nullopt;
  }
  round.out.rehearsal = std::move(wish);
  return answered || WasInjecting(round)
             ? std::nullopt
             : No(reason::kRehearsing, "asking the API server whether the pod would be allowed");
}

}  // namespace cachewarm::plan
