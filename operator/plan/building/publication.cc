// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/building/publication.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/api/reasons.h"
#include "operator/plan/building/proof.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

// Fails a build that published a suspended bundle again: the same files have the same digest.
// Prevents further builds of the key, because they would produce the same bundle.
void RejectSuspended(PlanContext& context, BuilderStatus& builder) {
  const std::string digest = builder.captured->digest.ToString();
  builder.bundles_suspended = kSuspendedPerKeyMax;
  FailBuild(context, builder, reason::kBundleSuspended,
            fmt::format("pod {} produced the suspended bundle {} again", builder.pod_name, digest));
}

// True if other nodes may get the bundle only after a proof. A build that produced the published
// bundle again needs none.
bool MustProve(const PlanContext& context, const BuilderStatus& builder) {
  const auto& bundles = context.out.status.bundles;
  return NeedsProof(context) && !builder.job.empty() &&
         std::none_of(bundles.begin(), bundles.end(), [&](const api::BundleStatus& each) {
           return each.key == builder.key && each.digest == builder.captured->digest;
         });
}

// Describes the capture and the proof behind a bundle, as the end of a clause.
std::string DescribeOrigin(const PlanContext& context, const BuilderStatus& builder) {
  if (builder.proof && NeedsProof(context)) {
    return fmt::format(" (started again by Job {} without compiling)", builder.proof->job);
  }
  return builder.ranks.size() > 1 ? fmt::format(" and its group of {} pods", builder.ranks.size())
                                  : std::string();
}

}  // namespace

void CompleteBuild(PlanContext& context, BuilderStatus& builder) {
  if (FindSuspended(context, builder.captured->digest) != nullptr) {
    RejectSuspended(context, builder);
  } else if (MustProve(context, builder)) {
    BeginProof(context, builder);
  } else {
    PublishBundle(context, builder);
  }
}

void PublishBundle(PlanContext& context, BuilderStatus& builder) {
  const api::BundleStatus bundle{.key = builder.key,
                                 .gpu_type = builder.gpu_type,
                                 .cpu_class = builder.cpu_class,
                                 .image = builder.image,
                                 .digest = builder.captured->digest,
                                 .bytes = builder.captured->bytes,
                                 .files = builder.captured->files,
                                 .native = builder.captured->native,
                                 .compile_seconds = builder.captured->compile_seconds,
                                 .builder_pod = builder.pod_name,
                                 .builder_node = builder.node,
                                 .published_time = context.stamp()};
  auto& bundles = context.out.status.bundles;
  const auto present = std::find_if(bundles.begin(), bundles.end(),
                                    [&](const auto& each) { return each.key == builder.key; });
  if (present == bundles.end()) {
    bundles.push_back(bundle);
  } else {
    *present = bundle;
  }
  context.serving.clear();
  const double seconds =
      std::chrono::duration<double>(context.in.now - builder.elected_time).count();
  RecordEvent(context, false, reason::kPublished,
              fmt::format("published {} files, {} bytes from pod {}{} for {}, {}: {}", bundle.files,
                          bundle.bytes, builder.pod_name, DescribeOrigin(context, builder),
                          builder.gpu_type, builder.cpu_class, bundle.digest.ToString()));
  builder.state = api::BuilderState::kCaptured;
  builder.reason = std::string(reason::kCaptured);
  builder.captured.reset();
  builder.proof.reset();
  context.out.builds_finished.push_back(
      {.gpu_type = builder.gpu_type, .reason = builder.reason, .seconds = seconds});
}

void AddSuspended(PlanContext& context, api::SuspendedBundle bundle) {
  auto& suspended = context.out.status.suspended_bundles;
  if (suspended.size() >= api::kSuspendedBundlesMax) {
    suspended.erase(suspended.begin());
  }
  suspended.push_back(std::move(bundle));
}

}  // namespace cachewarm::plan
