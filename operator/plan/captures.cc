// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using api::BuilderStatus;
using api::CaptureRequest;
using api::CaptureState;
using api::CaptureStatus;

namespace {

// What the hand-shake is about, found again from the names in status.builders.
struct Site {
  const PodView* pod = nullptr;
  size_t node_index = 0;
  const NodeState* node = nullptr;
  const CaptureRequest* asked = nullptr;  // as the NodeCache holds it
  const CaptureStatus* answer = nullptr;
  std::string id;
};

Site FindSite(const Round& round, const BuilderStatus& builder) {
  // The answer to a failed attempt, or about another key, must not be taken for that of this one by
  // the same pod.
  Site site{.pod = FindPod(round, builder.pod_uid),
            .id = fmt::format("{}-{}-{}", builder.pod_uid, fingerprint::Key8(builder.key),
                              builder.attempt)};
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    if (round.nodes[i].view->node->meta.name == builder.node) {
      site.node_index = i;
      site.node = &round.nodes[i];
    }
  }
  if (site.node == nullptr || site.node->cache == nullptr) {
    return site;
  }
  for (const CaptureRequest& request : site.node->cache->spec.captures) {
    if (request.id == site.id && request.warmup_uid == round.uid() && request.key == builder.key) {
      site.asked = &request;
    }
  }
  for (const CaptureStatus& status : site.node->cache->status.captures) {
    if (status.id == site.id && site.asked != nullptr) {
      site.answer = &status;
    }
  }
  return site;
}

struct Failure {
  std::string_view reason;
  std::string message;
};

bool HasExitedWell(const Round& round, const PodView& pod) {
  return EndsByItself(round.in.workload.kind) && pod.container->terminated &&
         pod.container->exit_code == 0;
}

std::optional<Failure> IsLost(const Site& site, const BuilderStatus& builder) {
  if (site.pod == nullptr || site.pod->pod->node != builder.node) {
    return Failure{reason::kBuilderLost, fmt::format("pod {} is gone", builder.pod_name)};
  }
  if (site.node == nullptr) {
    return Failure{reason::kBuilderLost, fmt::format("node {} is gone", builder.node)};
  }
  if (site.node->cache != nullptr) {
    const api::NodeStatus& facts = site.node->cache->status.node;
    if (facts.gpu_type != builder.gpu_type || facts.cpu_class != builder.cpu_class) {
      return Failure{reason::kBuilderLost, fmt::format("node {} is now {}, {}", builder.node,
                                                       facts.gpu_type, facts.cpu_class)};
    }
  }
  return std::nullopt;
}

std::optional<Failure> HasStopped(const Round& round, const Site& site) {
  const api::ContainerStatus* container = site.pod->container;
  if (container == nullptr) {
    return Failure{reason::kBuilderLost, "its container is gone"};
  }
  if (HasExitedWell(round, *site.pod)) {
    return site.asked != nullptr ? std::nullopt
                                 : std::optional(Failure{reason::kBuilderLost,
                                                         "it ended before its capture was asked "
                                                         "for"});
  }
  if (!container->running) {
    return Failure{reason::kBuilderCrashed,
                   fmt::format("the container ended with exit code {} before its cache was taken"
                               "{}{}",
                               container->exit_code, container->message.empty() ? "" : ": ",
                               container->message)};
  }
  if (site.asked != nullptr && site.asked->started_at != container->started_at) {
    return Failure{reason::kBuilderRestarted,
                   fmt::format("the container was restarted ({} restarts){}{}", container->restarts,
                               container->message.empty() ? "" : ": ", container->message)};
  }
  return std::nullopt;
}

std::optional<Failure> IsLate(Round& round, const Site& site, const BuilderStatus& builder) {
  const int seconds = round.in.warmup.spec.compile.timeout_seconds;
  const Duration limit = std::chrono::seconds(seconds);
  const WallTime ready = ReadyAt(round, *site.pod);
  const bool is_ready = ready != WallTime{};
  const WallTime from =
      is_ready ? std::max(ready, builder.elected_time) : site.pod->container->started_at;
  if (round.in.now < from + limit) {
    WakeAt(round, from + limit);
    return std::nullopt;
  }
  if (!is_ready) {
    const std::string& words = site.pod->container->message;
    return Failure{reason::kBuilderTimeout,
                   fmt::format("pod {} is not ready {} s after its container started "
                               "(compile.timeoutSeconds); look at its log and readiness probe{}{}",
                               builder.pod_name, seconds, words.empty() ? "" : ": ", words)};
  }
  if (site.answer != nullptr && site.answer->state == CaptureState::kFailed) {
    return Failure{reason::kPublishFailed, site.answer->message};
  }
  return Failure{reason::kNeverSettled,
                 fmt::format("the cache of pod {} was still changing, or its agent gave no answer, "
                             "{} s after it was ready",
                             builder.pod_name, seconds)};
}

// The agent goes on trying to publish; every other failure is final.
std::optional<Failure> HasFailed(const Site& site) {
  if (site.answer == nullptr || site.answer->state != CaptureState::kFailed ||
      site.answer->reason == reason::kPublishFailed) {
    return std::nullopt;
  }
  return Failure{site.answer->reason.empty() ? reason::kNothingToCapture
                                             : std::string_view(site.answer->reason),
                 site.answer->message};
}

CaptureRequest Ask(const Round& round, const Site& site, const BuilderStatus& builder) {
  const PodView& pod = *site.pod;
  const bool exited = HasExitedWell(round, pod) && site.asked != nullptr;
  return {.id = site.id,
          .warmup_uid = round.uid(),
          .pod_uid = builder.pod_uid,
          .run_as = pod.run_as,
          .key = builder.key,
          .factors = {.gpu_type = builder.gpu_type,
                      .cpu_class = builder.cpu_class,
                      .image = pod.factors.image,
                      .devices = pod.factors.devices,
                      .container = pod.factors.container},
          .settle_seconds = round.in.warmup.spec.compile.settle_seconds,
          .started_at = exited ? site.asked->started_at : pod.container->started_at,
          .ready_at = ReadyAt(round, pod)};
}

void Record(Round& round, const Site& site, BuilderStatus& builder) {
  const CaptureStatus& answer = *site.answer;
  const api::BundleStatus bundle{.key = builder.key,
                                 .gpu_type = builder.gpu_type,
                                 .cpu_class = builder.cpu_class,
                                 .image = builder.image,
                                 .digest = answer.digest,
                                 .bytes = answer.bytes,
                                 .files = answer.files,
                                 .native = answer.native,
                                 .compile_seconds = answer.compile_seconds,
                                 .builder_pod = builder.pod_name,
                                 .builder_node = builder.node,
                                 .published_time = round.stamp()};
  auto& bundles = round.out.status.bundles;
  const auto present = std::find_if(bundles.begin(), bundles.end(),
                                    [&](const auto& each) { return each.key == builder.key; });
  if (present == bundles.end()) {
    bundles.push_back(bundle);
  } else {
    *present = bundle;
  }
  round.serving.clear();
  builder.state = BuilderState::kCaptured;
  builder.finished_time = round.stamp();
  builder.reason = std::string(reason::kCaptured);
  builder.message.clear();
  const double seconds = std::chrono::duration<double>(round.in.now - builder.elected_time).count();
  round.out.builds_finished.push_back(
      {.gpu_type = builder.gpu_type, .reason = builder.reason, .seconds = seconds});
  Tell(
      round, false, reason::kPublished,
      fmt::format("{} files, {} bytes from pod {} for {}, {}: {}", bundle.files, bundle.bytes,
                  builder.pod_name, builder.gpu_type, builder.cpu_class, bundle.digest.ToString()));
}

// Why there can be no bundle from this builder any more.
std::optional<Failure> Check(Round& round, const Site& site, const BuilderStatus& builder) {
  if (auto failure = IsLost(site, builder)) {
    return failure;
  }
  if (auto failure = HasStopped(round, site)) {
    return failure;
  }
  const auto key = fingerprint::KeyOf(Ask(round, site, builder).factors);
  if (!key.ok() || *key != builder.key) {
    return Failure{reason::kBuilderLost,
                   fmt::format("pod {} is not what its key names", builder.pod_name)};
  }
  return HasFailed(site);
}

bool IsPushed(const Round& round, const Site& site) {
  return site.answer != nullptr && site.answer->state == CaptureState::kPushed &&
         !site.answer->digest.empty() && ReadyAt(round, *site.pod) != WallTime{};
}

void Note(Round& round, const CaptureStatus& answer, BuilderStatus& builder) {
  const bool waits = answer.state == CaptureState::kWaiting;
  const bool failed = answer.state == CaptureState::kFailed;
  builder.state = waits ? BuilderState::kElected : BuilderState::kCapturing;
  builder.reason = failed ? answer.reason : std::string();
  builder.message = failed ? CutMessage(answer.message) : std::string();
  if (failed) {
    round.store_refusal = answer.message;
  }
}

}  // namespace

void FollowCapture(Round& round, BuilderStatus& builder) {
  const Site site = FindSite(round, builder);
  std::optional<Failure> failure = Check(round, site, builder);
  if (!failure && IsPushed(round, site)) {
    Record(round, site, builder);
    return;
  }
  if (!failure) {
    failure = IsLate(round, site, builder);
  }
  if (failure) {
    FailBuild(round, builder, failure->reason, std::move(failure->message));
    return;
  }
  if (!AwaitRequests(round, *site.pod, builder)) {
    return;
  }
  if (site.node->cache != nullptr) {
    round.captures[site.node_index].push_back(Ask(round, site, builder));
  }
  if (site.answer != nullptr) {
    Note(round, *site.answer, builder);
  }
}

}  // namespace cachewarm::plan
