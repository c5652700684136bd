// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/held_pods.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "fmt/format.h"
#include "lib/api/gate/release.h"
#include "lib/api/kubernetes.h"
#include "lib/api/names.h"
#include "lib/base/fan_out.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/client/release_gate.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/watcher.h"

namespace cachewarm::cli {
namespace {

using codec::Json;

constexpr std::string_view kManager = "cachewarm-cli";
constexpr size_t kWidth = 8;
constexpr int kPageItems = 500;
constexpr int kListTries = 3;
constexpr int kReleaseTries = 4;

// Our gate can be told before the pod is decoded, which most pods then need not be.
bool HasGates(const Json& pod) {
  const Json* gates = kube::At(pod, {"spec", "schedulingGates"});
  return gates != nullptr && gates->is_array() && !gates->empty();
}

// Whatever else is in the pod, it can be let go.
api::Pod ReadPod(Json object) {
  const auto shared = std::make_shared<const Json>(std::move(object));
  absl::StatusOr<api::Pod> pod = api::DecodePod(shared);
  api::Pod out = pod.ok() ? *std::move(pod) : api::gate::DecodeGates(*shared);
  out.object.reset();
  return out;
}

ReleaseOutcome About(const api::Pod& pod, WallTime now) {
  const auto warmup = pod.meta.annotations.find(api::kWarmupAnnotation);
  return {.ns = pod.meta.ns,
          .pod = pod.meta.name,
          .warmup = warmup == pod.meta.annotations.end() ? "" : std::string(warmup->second),
          .held = std::max(now - pod.meta.created, Duration(0)),
          .message = {}};
}

// One run over the pods.
class Release {
 public:
  Release(const ReleaseMeans& means, const ReleaseWish& wish, std::stop_token stop)
      : means_(means), wish_(wish), stop_(std::move(stop)) {}

  absl::Status Run() {
    CW_RETURN_IF_ERROR(wish_.names.empty() ? FindAll() : FindNamed());
    FanOut(held_.size(), kWidth, stop_, [this](size_t i) { Tell(LetGo(held_[i])); });
    return stop_.stop_requested() ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

 private:
  void Tell(const ReleaseOutcome& outcome) {
    std::lock_guard lock(mutex_);
    means_.on_outcome(outcome);
  }

  void Keep(Json object) {
    api::Pod pod = ReadPod(std::move(object));
    if (api::gate::IsHeld(pod) && !pod.meta.deleting) {
      held_.push_back(std::move(pod));
    } else if (!wish_.names.empty()) {
      ReleaseOutcome outcome = About(pod, means_.clock.Now());
      outcome.result = ReleaseResult::kNotHeld;
      Tell(outcome);
    }
  }

  // One page of all; its continue token. Held pods are bound to no node, and few others are: the
  // server leaves out the rest.
  absl::StatusOr<std::string> FindPage(const kube::WatcherAction& asked) {
    const kube::ListOptions options{.ns = wish_.ns,
                                    .field_selector = "spec.nodeName=",
                                    .limit = asked.page_items,
                                    .continue_token = asked.continue_token};
    CW_ASSIGN_OR_RETURN(const Json page, means_.client.DoList(
                                             List(kube::kPods, options),
                                             [this](Json pod) {
                                               if (HasGates(pod)) {
                                                 Keep(std::move(pod));
                                               }
                                             },
                                             stop_));
    return kube::TextAt(page, {"metadata", "continue"});
  }

  absl::Status FindAll() {
    kube::Watcher pages({}, kPageItems);
    for (int expired = 0; !stop_.stop_requested();) {
      const kube::WatcherAction asked = pages.Next(means_.clock.Monotonic(), 0.0);
      if (asked.type == kube::WatcherActionType::kWatch) {
        break;  // all are listed
      }
      if (asked.type == kube::WatcherActionType::kSleep) {
        SleepFor(means_.clock, asked.delay, stop_);
        continue;
      }
      if (pages.IsFirstPage()) {
        held_.clear();
      }
      const absl::StatusOr<std::string> more = FindPage(asked);
      if (more.ok()) {
        pages.OnPage(*more, "");
        continue;
      }
      const bool has_expired = absl::IsOutOfRange(more.status()) && ++expired < kListTries;
      const bool is_too_long = kube::IsTooLong(more.status()) && asked.page_items > 1;
      if (!has_expired && !is_too_long) {
        return more.status();
      }
      pages.OnListFailure(more.status(), means_.clock.Monotonic());
    }
    return absl::OkStatus();
  }

  absl::Status FindNamed() {
    for (const std::string& name : wish_.names) {
      CW_ASSIGN_OR_RETURN(Json pod, means_.client.Do(Get(kube::kPods, {wish_.ns, name}), stop_));
      Keep(std::move(pod));
    }
    return absl::OkStatus();
  }

  ReleaseOutcome LetGo(const api::Pod& pod) {
    const WallTime now = means_.clock.Now();
    ReleaseOutcome outcome = About(pod, now);
    if (wish_.past_deadline.has_value() &&
        now < api::gate::Deadline(pod, *wish_.past_deadline) + kOperatorsTurn) {
      outcome.result = ReleaseResult::kNotDue;
    } else if (wish_.dry_run) {
      outcome.result = ReleaseResult::kWouldRelease;
    } else {
      const absl::StatusOr<bool> released = Patch(pod, outcome.held);
      outcome.result = !released.ok() ? ReleaseResult::kFailed
                       : *released    ? ReleaseResult::kReleased
                                      : ReleaseResult::kNotHeld;
      outcome.message = released.ok() ? "" : Message(released.status());
    }
    return outcome;
  }

  // Another gate of the pod may go at the same moment, and ours then stands in another place.
  absl::StatusOr<bool> Patch(api::Pod pod, Duration held) {
    const double seconds = std::chrono::duration<double>(held).count();
    for (int tries = 1;; ++tries) {
      CW_ASSIGN_OR_RETURN(
          const Json patch,
          api::gate::ReleasePatch(pod, {.reason = wish_.reason, .held_seconds = seconds}));
      auto released = kube::ReleaseGate(
          means_.client, {.pod = pod, .operations = patch, .manager = kManager}, stop_);
      const bool moved =
          absl::IsAborted(released.status()) || absl::IsInvalidArgument(released.status());
      if (!moved || tries == kReleaseTries) {
        return released;
      }
      CW_ASSIGN_OR_RETURN(Json now,
                          means_.client.Do(Get(kube::kPods, {pod.meta.ns, pod.meta.name}), stop_));
      pod = ReadPod(std::move(now));
      if (!api::gate::IsHeld(pod)) {
        return false;
      }
    }
  }

  const ReleaseMeans& means_;
  const ReleaseWish& wish_;
  const std::stop_token stop_;
  std::vector<api::Pod> held_;
  std::mutex mutex_;
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

absl::Status ReleaseHeld(const ReleaseMeans& means, const ReleaseWish& wish, std::stop_token stop) {
  return Release(means, wish, std::move(stop)).Run();
}

}  // namespace cachewarm::cli
