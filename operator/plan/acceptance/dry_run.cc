// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/render/dry_run_pod.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kDryRunInterval = std::chrono::minutes(10);

DryRunRequest MakeDryRunRequest(const Context& context) {
  const api::CacheWarmup& warmup = context.in.warmup;
  const TemplateView& shape = context.pod_template;
  render::DryRunPods pods =
      render::MakeDryRunPods({.warmup = warmup,
                              .pod_template = *shape.pod_template,
                              .mount = {.container = shape.factors.container,
                                        .host_path = HostPath(context, shape.run_as),
                                        .env = context.workload.env},
                              .gate = context.may_hold()});
  std::string text = codec::DumpJson(*pods.injected);
  for (const auto& [key, value] : context.in.namespace_labels) {
    text += fmt::format("\n{}={}", key, value);
  }
  return {.fingerprint = DigestOf(text).Short(),
          .revision = shape.revision,
          .container = shape.factors.container,
          .unmodified = std::move(pods.unmodified),
          .injected = std::move(pods.injected)};
}

}  // namespace

DryRunDecision DecideDryRun(const Context& context) {
  DryRunRequest request = MakeDryRunRequest(context);
  const AdmissionDryRun& last = context.in.dry_run;
  const bool answered = last.fingerprint == request.fingerprint;
  const WallTime next = last.time + kDryRunInterval;
  if (answered && context.in.now < next) {
    return {.recheck_at = next};
  }
  return {.refusal =
              answered || WasInjecting(context)
                  ? std::nullopt
                  : Refuse(reason::kAdmissionDryRun,
                           "waiting for the API server's answer to a dry run of the injected pod"),
          .request = std::move(request)};
}

}  // namespace cachewarm::plan
