// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/held_pods.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/api/kubernetes.h"
#include "lib/api/names.h"
#include "lib/base/fan_out.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/client/release.h"
#include "lib/gate/client/slow_namespace_limiter.h"
#include "lib/gate/core/held.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/watcher.h"

namespace cachewarm::cli {
namespace {

using codec::Json;

constexpr std::string_view kManager = "cachewarm-cli";
constexpr size_t kParallelReleases = 8;
constexpr int kPageItems = 500;
constexpr int kListTries = 3;
constexpr int kReleaseTries = 4;
// The CronJob that runs `cachewarm release` (release.yaml of the chart) has 55 s for all pods of
// the cluster, so pods of slow namespaces are deferred until all others are released.
constexpr gate::SlowNamespaceLimiter::SlowPatches kDeferSlow{.at_once = 0, .limit = Duration(0)};
// Longest annotation value that is kept: the maximum length of a DNS subdomain, which no valid
// value exceeds. A longer value counts as missing, because users may write up to 256 KiB.
constexpr size_t kAnnotationBytesMax = 253;

// Returns true if the pod has any scheduling gate. Pods without one, most pods, are not decoded.
bool HasGates(const Json& pod) {
  const Json& gates = codec::ListAt(pod, {"spec", "schedulingGates"});
  return !gates.empty();
}

// Returns the value of an annotation; "" if it is missing or too long.
std::string AnnotationValue(const api::Pod& pod, std::string_view key) {
  const auto found = pod.meta.annotations.find(key);
  const bool is_one =
      found != pod.meta.annotations.end() && found->second.size() <= kAnnotationBytesMax;
  return is_one ? std::string(found->second) : std::string();
}

// Returns a copy with only the fields that a release needs, to save memory: thousands of pods may
// be held, each as large as the server allows. If the pod has annotations, so does the copy,
// because the release patch adds the reason of the release only to existing annotations.
api::Pod MinimalPod(const api::Pod& pod) {
  api::Pod out;
  out.meta.ns = pod.meta.ns;
  out.meta.name = pod.meta.name;
  out.meta.uid = pod.meta.uid;
  out.meta.created = pod.meta.created;
  out.meta.deleting = pod.meta.deleting;
  out.gates = pod.gates;
  if (!pod.meta.annotations.empty()) {
    out.meta.annotations = {
        {std::string(api::kWarmupAnnotation), AnnotationValue(pod, api::kWarmupAnnotation)},
        {std::string(api::kHeldUntilAnnotation), AnnotationValue(pod, api::kHeldUntilAnnotation)}};
  }
  return out;
}

// Decodes a pod. If that fails, reads only the identity and the gates of the pod, which are
// sufficient to release it.
api::Pod ReadPod(Json object) {
  const auto shared = std::make_shared<const Json>(std::move(object));
  const absl::StatusOr<api::Pod> pod = api::DecodePod(shared);
  return MinimalPod(pod.ok() ? *pod : gate::DecodeGates(*shared));
}

// Returns the pods of all namespaces in turn: first one pod of each namespace, then a second one of
// each, and so on. With this order, many failing pods of one namespace do not delay the pods of
// other namespaces.
std::vector<const api::Pod*> InterleaveNamespaces(const std::vector<api::Pod>& pods) {
  std::map<std::string_view, size_t> seen;  // by namespace
  std::vector<std::pair<size_t, const api::Pod*>> ranked;
  ranked.reserve(pods.size());
  for (const api::Pod& pod : pods) {
    ranked.emplace_back(seen[pod.meta.ns]++, &pod);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const api::Pod*> interleaved(ranked.size());
  std::transform(ranked.begin(), ranked.end(), interleaved.begin(),
                 [](const auto& each) { return each.second; });
  return interleaved;
}

ReleaseOutcome OutcomeFor(const api::Pod& pod, WallTime now) {
  return {.ns = pod.meta.ns,
          .pod = pod.meta.name,
          .warmup = AnnotationValue(pod, api::kWarmupAnnotation),
          .held = std::max(now - pod.meta.created, Duration(0)),
          .message = {}};
}

// State of one call of ReleaseHeld().
class Release {
 public:
  Release(const ReleaseDependencies& dependencies, const ReleaseRequest& request,
          std::stop_token stop)
      : dependencies_(dependencies),
        request_(request),
        stop_(std::move(stop)),
        limiter_(dependencies.clock, kDeferSlow) {}

  absl::Status Run() {
    CW_RETURN_IF_ERROR(request_.names.empty() ? FindAll() : FindNamed());
    const std::vector<const api::Pod*> pods = InterleaveNamespaces(held_);
    FanOut(pods.size(), kParallelReleases, stop_, [&](size_t i) { ReleaseOrDefer(*pods[i]); });
    // All other pods are already released, so slow patches of the deferred pods cannot delay them.
    FanOut(deferred_.size(), kParallelReleases, stop_,
           [this](size_t i) { Report(ReleasePod(*deferred_[i], stop_)); });
    return stop_.stop_requested() ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

 private:
  void Report(const ReleaseOutcome& outcome) {
    std::lock_guard lock(mutex_);
    dependencies_.on_outcome(outcome);
  }

  void Add(Json object) {
    api::Pod pod = ReadPod(std::move(object));
    if (gate::IsHeld(pod) && !pod.meta.deleting) {
      held_.push_back(std::move(pod));
    } else if (!request_.names.empty()) {
      ReleaseOutcome outcome = OutcomeFor(pod, dependencies_.clock.Now());
      outcome.result = ReleaseResult::kNotHeld;
      Report(outcome);
    }
  }

  // Reads one page of pods and collects the held ones; returns the continue token of the page. The
  // field selector excludes bound pods, because held pods are not bound to a node.
  absl::StatusOr<std::string> FindPage(const kube::WatcherAction& action) {
    const kube::ListOptions options{.ns = request_.ns,
                                    .field_selector = "spec.nodeName=",
                                    .limit = action.page_items,
                                    .continue_token = action.continue_token};
    CW_ASSIGN_OR_RETURN(const Json page, dependencies_.client.DoList(
                                             List(kube::kPods, options),
                                             [this](Json pod) {
                                               if (HasGates(pod)) {
                                                 Add(std::move(pod));
                                               }
                                             },
                                             stop_));
    return codec::TextAt(page, {"metadata", "continue"});
  }

  absl::Status FindAll() {
    kube::Watcher pages({}, kPageItems);
    for (int expired = 0; !stop_.stop_requested();) {
      const kube::WatcherAction action = pages.Next(dependencies_.clock.Monotonic(), 0.0);
      if (action.type == kube::WatcherActionType::kWatch) {
        break;  // all pods are listed
      }
      if (action.type == kube::WatcherActionType::kSleep) {
        SleepFor(dependencies_.clock, action.delay, stop_);
        continue;
      }
      if (pages.IsFirstPage()) {
        held_.clear();
      }
      const absl::StatusOr<std::string> more = FindPage(action);
      if (more.ok()) {
        pages.OnPage(*more, "");
        continue;
      }
      const bool has_expired = absl::IsOutOfRange(more.status()) && ++expired < kListTries;
      const bool is_too_long = kube::IsTooLong(more.status()) && action.page_items > 1;
      if (!has_expired && !is_too_long) {
        return more.status();
      }
      pages.OnListFailure(more.status(), dependencies_.clock.Monotonic());
    }
    return absl::OkStatus();
  }

  absl::Status FindNamed() {
    for (const std::string& name : request_.names) {
      CW_ASSIGN_OR_RETURN(Json pod,
                          dependencies_.client.Do(Get(kube::kPods, {request_.ns, name}), stop_));
      Add(std::move(pod));
    }
    return absl::OkStatus();
  }

  // Releases a pod, or defers it if its namespace is slow. A patch that fails after a second or
  // more makes its namespace slow (gate::SlowNamespaceLimiter). If the limiter cancelled the patch,
  // its pod is deferred too; if the patch failed, the failure is reported.
  void ReleaseOrDefer(const api::Pod& pod) {
    if (const std::optional<ReleaseResult> result = SkipResult(pod); result.has_value()) {
      ReleaseOutcome outcome = OutcomeFor(pod, dependencies_.clock.Now());
      outcome.result = *result;
      Report(outcome);
      return;
    }
    std::optional<ReleaseOutcome> outcome;
    const auto patch = [&](const std::stop_token& ending) {
      outcome = ReleasePod(pod, ending);
      const bool failed = outcome->result == ReleaseResult::kFailed;
      absl::Status status = failed ? absl::UnavailableError(outcome->message) : absl::OkStatus();
      if (failed && ending.stop_requested()) {
        outcome.reset();
      }
      return status;
    };
    limiter_.Run(pod.meta.ns, stop_, patch).IgnoreError();  // the error is in `outcome`
    if (outcome.has_value()) {
      Report(*outcome);
    } else {
      Defer(pod);
    }
  }

  void Defer(const api::Pod& pod) {
    std::lock_guard lock(mutex_);
    deferred_.push_back(&pod);
  }

  // Returns the outcome if the pod must not be patched; nullopt if it must be patched.
  std::optional<ReleaseResult> SkipResult(const api::Pod& pod) const {
    if (request_.past_deadline.has_value() &&
        dependencies_.clock.Now() <
            gate::Deadline(pod, *request_.past_deadline) + kOperatorGracePeriod) {
      return ReleaseResult::kNotDue;
    }
    return request_.dry_run ? std::optional(ReleaseResult::kWouldRelease) : std::nullopt;
  }

  ReleaseOutcome ReleasePod(const api::Pod& pod, std::stop_token stop) {
    ReleaseOutcome outcome = OutcomeFor(pod, dependencies_.clock.Now());
    const absl::StatusOr<bool> released = Patch(pod, outcome.held, std::move(stop));
    outcome.result = !released.ok() ? ReleaseResult::kFailed
                     : *released    ? ReleaseResult::kReleased
                                    : ReleaseResult::kNotHeld;
    outcome.message = released.ok() ? "" : Message(released.status());
    return outcome;
  }

  // Retries if another gate of the pod is removed concurrently, because the patch addresses
  // cachewarm's gate by its index.
  absl::StatusOr<bool> Patch(api::Pod pod, Duration held, std::stop_token stop) {
    const double seconds = std::chrono::duration<double>(held).count();
    for (int tries = 1;; ++tries) {
      auto released = gate::Release(
          dependencies_.client,
          {.pod = pod, .reason = request_.reason, .held_seconds = seconds, .manager = kManager},
          stop);
      const bool moved =
          absl::IsAborted(released.status()) || absl::IsInvalidArgument(released.status());
      if (!moved || tries == kReleaseTries) {
        return released;
      }
      CW_ASSIGN_OR_RETURN(
          Json now, dependencies_.client.Do(Get(kube::kPods, {pod.meta.ns, pod.meta.name}), stop));
      pod = ReadPod(std::move(now));
      if (!gate::IsHeld(pod)) {
        return false;
      }
    }
  }

  const ReleaseDependencies& dependencies_;
  const ReleaseRequest& request_;
  const std::stop_token stop_;
  gate::SlowNamespaceLimiter limiter_;
  std::vector<api::Pod> held_;
  std::mutex mutex_;
  std::vector<const api::Pod*> deferred_;
};

}  // namespace

std::string_view Name(ReleaseResult result) {
  switch (result) {
    case ReleaseResult::kReleased:
      return "released";
    case ReleaseResult::kWouldRelease:
      return "would release";
    case ReleaseResult::kNotDue:
      return "not due";
    case ReleaseResult::kNotHeld:
      return "not held";
    case ReleaseResult::kFailed:
      break;
  }
  return "failed";
}

absl::Status ReleaseHeld(const ReleaseDependencies& dependencies, const ReleaseRequest& request,
                         std::stop_token stop) {
  return Release(dependencies, request, std::move(stop)).Run();
}

}  // namespace cachewarm::cli
