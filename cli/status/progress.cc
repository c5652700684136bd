// SPDX-License-Identifier: Apache-2.0
#include "cli/status/progress.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "fmt/format.h"

namespace cachewarm::status {
namespace {

using std::chrono::duration_cast;

Duration Seconds(double seconds) {
  return duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::string Joined(const std::string& reason, const std::string& message) {
  return reason + (reason.empty() || message.empty() ? "" : ": ") + message;
}

const api::NodeWarmup* ReportedWarmup(const api::NodeCache& node, const std::string& uid) {
  const auto& all = node.status.warmups;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const api::NodeWarmup& each) { return each.uid == uid; });
  return found == all.end() ? nullptr : &*found;
}

const api::NodeBundle* ReportedBundle(const api::NodeWarmup* warmup, const Digest& digest) {
  if (warmup == nullptr) {
    return nullptr;
  }
  const auto& all = warmup->bundles;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const api::NodeBundle& each) { return each.digest == digest; });
  return found == all.end() ? nullptr : &*found;
}

State StateOf(api::BundleState state) {
  switch (state) {
    case api::BundleState::kFetching:
      return State::kFetching;
    case api::BundleState::kActive:
      return State::kActive;
    case api::BundleState::kFailed:
      return State::kFailed;
    case api::BundleState::kWaiting:
      break;
  }
  return State::kWaiting;
}

// The capture of a builder's pod, as the operator requested it and as the agent reports it.
struct Capture {
  const api::CaptureRequest* request = nullptr;
  const api::CaptureStatus* status = nullptr;
};

Capture CaptureOf(const std::vector<api::NodeCache>& nodes, const std::string& pod_uid) {
  Capture capture;
  for (const api::NodeCache& node : nodes) {
    for (const api::CaptureRequest& request : node.spec.captures) {
      capture.request = request.pod_uid == pod_uid ? &request : capture.request;
    }
    for (const api::CaptureStatus& status : node.status.captures) {
      capture.status = status.id == pod_uid ? &status : capture.status;
    }
  }
  return capture;
}

State BuildState(const api::BuilderStatus& builder, const Capture& capture) {
  if (builder.state == api::BuilderState::kFailed) {
    return State::kBuildFailed;
  }
  if (builder.state == api::BuilderState::kProving) {
    return State::kProving;
  }
  const bool is_packed =
      capture.status != nullptr && (capture.status->state == api::CaptureState::kPacking ||
                                    capture.status->state == api::CaptureState::kPushed);
  if (is_packed) {
    return State::kPublishing;
  }
  if (capture.request == nullptr || capture.request->started_time == WallTime{}) {
    return builder.state == api::BuilderState::kCapturing ? State::kSettling : State::kStarting;
  }
  return capture.request->ready_time == WallTime{} ? State::kCompiling : State::kSettling;
}

BundleProgress BuildProgress(const api::CacheWarmup& warmup, const api::BuilderStatus& builder,
                             const Capture& capture, WallTime now) {
  BundleProgress out{.gpu_type = builder.gpu_type,
                     .cpu_class = builder.cpu_class,
                     .node = builder.node,
                     .pod = builder.pod_name,
                     .state = BuildState(builder, capture),
                     .key = builder.key,
                     .message = Joined(builder.reason, builder.message)};
  if (out.state == State::kBuildFailed) {
    return out;
  }
  const bool has_started =
      capture.request != nullptr && capture.request->started_time != WallTime{};
  const WallTime since = has_started ? capture.request->started_time : builder.elected_time;
  if (since != WallTime{} && since <= now) {
    out.taken = duration_cast<Duration>(now - since);
  }
  const double expected = warmup.status.starts.cold_median_seconds;
  if (out.state == State::kCompiling && expected > 0 && out.taken.has_value()) {
    out.left = std::max(Seconds(expected) - *out.taken, Duration(0));
  }
  if (capture.status != nullptr) {
    out.bytes_total = capture.status->bytes;
    out.message = Joined(capture.status->reason, capture.status->message);
  }
  return out;
}

// Adds the running and failed builds. A build that was captured is a bundle already.
void AddBuilds(const api::CacheWarmup& warmup, const std::vector<api::NodeCache>& nodes,
               WallTime now, std::vector<BundleProgress>& out) {
  for (const api::BuilderStatus& builder : warmup.status.builders) {
    if (builder.state == api::BuilderState::kCaptured) {
      continue;
    }
    const std::string& pod = builder.proof.has_value() && !builder.proof->pod_uid.empty()
                                 ? builder.proof->pod_uid
                                 : builder.pod_uid;
    out.push_back(BuildProgress(warmup, builder, CaptureOf(nodes, pod), now));
  }
}

void SetFetchRate(const api::NodeBundle& reported, BundleProgress& out) {
  if (out.state != State::kFetching || reported.fetch_seconds <= 0 || reported.bytes_done <= 0) {
    return;
  }
  out.bytes_per_second = static_cast<double>(reported.bytes_done) / reported.fetch_seconds;
  if (out.bytes_total > 0) {
    const int64_t missing = std::max<int64_t>(out.bytes_total - reported.bytes_done, 0);
    out.left = Seconds(static_cast<double>(missing) / out.bytes_per_second);
  }
}

// Rows of one node.
class NodeProgress {
 public:
  NodeProgress(const api::CacheWarmup& warmup, const api::NodeCache& node, WallTime now)
      : warmup_(warmup), node_(node), now_(now), reported_(ReportedWarmup(node, warmup.uid)) {}

  void AddTo(std::vector<BundleProgress>& out) const {
    const api::WantedWarmup* wanted = Wanted();
    if (wanted == nullptr) {
      return;
    }
    const size_t before = out.size();
    for (const api::WantedBundle& bundle : wanted->bundles) {
      out.push_back(WantedBundle(bundle));
    }
    for (const api::BundleStatus& bundle : warmup_.status.bundles) {
      const bool is_wanted =
          std::any_of(wanted->bundles.begin(), wanted->bundles.end(),
                      [&](const api::WantedBundle& each) { return each.digest == bundle.digest; });
      if (!is_wanted && bundle.nodes_desired > 0 && Fits(bundle)) {
        BundleProgress row = Row(State::kWaiting, bundle.key, bundle.digest, bundle.bytes);
        row.message = "waits for a fetch slot";
        out.push_back(row);
      }
    }
    if (out.size() == before) {
      BundleProgress row = Row(State::kNoBundle, "", {}, 0);
      row.message = reported_ != nullptr && !reported_->message.empty()
                        ? reported_->message
                        : "no bundle for this node yet";
      out.push_back(row);
    }
    for (size_t i = before; i < out.size(); ++i) {
      NoteOldReport(out[i]);
    }
  }

 private:
  const api::WantedWarmup* Wanted() const {
    const auto& all = node_.spec.warmups;
    const auto found = std::find_if(all.begin(), all.end(), [&](const api::WantedWarmup& each) {
      return each.uid == warmup_.uid;
    });
    return found == all.end() ? nullptr : &*found;
  }

  bool Fits(const api::BundleStatus& bundle) const {
    const api::NodeStatus& node = node_.status.node;
    return bundle.gpu_type == node.gpu_type &&
           (!bundle.native || bundle.cpu_class == node.cpu_class);
  }

  BundleProgress Row(State state, const std::string& key, const Digest& digest,
                     int64_t bytes) const {
    BundleProgress row{.gpu_type = node_.status.node.gpu_type,
                       .cpu_class = node_.status.node.cpu_class,
                       .node = node_.name,
                       .pod = {},
                       .state = state,
                       .key = key,
                       .bundle = digest,
                       .bytes_total = bytes};
    if (node_.status.heartbeat != WallTime{}) {
      row.reported = node_.status.heartbeat;
    }
    return row;
  }

  BundleProgress WantedBundle(const api::WantedBundle& bundle) const {
    const api::NodeBundle* reported = ReportedBundle(reported_, bundle.digest);
    if (reported == nullptr) {
      BundleProgress row = Row(State::kWaiting, bundle.key, bundle.digest, bundle.bytes);
      row.message = "the agent has not reported this bundle yet";
      return row;
    }
    BundleProgress row = Row(StateOf(reported->state), bundle.key, bundle.digest, bundle.bytes);
    row.bytes_done = reported->bytes_done;
    row.message = Joined(reported->reason, reported->message);
    SetFetchRate(*reported, row);
    return row;
  }

  // The numbers of an old report may be wrong, and a rate from them is.
  void NoteOldReport(BundleProgress& row) const {
    if (!row.reported.has_value()) {
      row.message = "the agent of this node has never reported";
      return;
    }
    const auto age = duration_cast<Duration>(now_ - *row.reported);
    if (age > (row.state == State::kFetching ? kFetchReportAgeMax : kReportAgeMax)) {
      row.message =
          Joined(row.message, fmt::format("the agent reported last {} ago", FormatDuration(age)));
      row.bytes_per_second = 0;
      row.left.reset();
    }
  }

  const api::CacheWarmup& warmup_;
  const api::NodeCache& node_;
  const WallTime now_;
  const api::NodeWarmup* reported_;
};

bool IsBuild(State state) {
  return state <= State::kBuildFailed;
}

}  // namespace

std::string_view Name(State state) {
  static constexpr std::string_view kNames[] = {"Starting", "Compiling",   "Settling", "Publishing",
                                                "Proving",  "BuildFailed", "NoBundle", "Waiting",
                                                "Fetching", "Active",      "Failed"};
  return kNames[static_cast<size_t>(state)];
}

std::vector<BundleProgress> ProgressOf(const api::CacheWarmup& warmup,
                                       const std::vector<api::NodeCache>& nodes, WallTime now) {
  std::vector<BundleProgress> out;
  AddBuilds(warmup, nodes, now, out);
  for (const api::NodeCache& node : nodes) {
    NodeProgress(warmup, node, now).AddTo(out);
  }
  std::stable_sort(out.begin(), out.end(), [](const BundleProgress& a, const BundleProgress& b) {
    return std::make_tuple(a.gpu_type, !IsBuild(a.state), a.node, a.bundle.ToString()) <
           std::make_tuple(b.gpu_type, !IsBuild(b.state), b.node, b.bundle.ToString());
  });
  return out;
}

}  // namespace cachewarm::status
