// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/decisions.h"

namespace cachewarm::plan {

using api::StartSample;

namespace {

// A log is read only this long after the start has completed: kubelet rotates logs, and the rest of
// a rotated log may begin with the text of requests.
constexpr Duration kReadWithin = std::chrono::minutes(10);
// Maximum number of logs that are being read for one warmup. A finished read causes the next plan.
constexpr size_t kLogReadsMax = 16;

bool IsOf(const StartSample& sample, const PodView& pod) {
  return sample.pod_uid == pod.pod->meta.uid;
}

// True if the status has no answer yet about the log of this start. The log of an injected pod is
// read as soon as its start has completed, because a builder Job may be deleted soon after. Another
// pod is a start only once it is counted.
bool LacksReport(const PodView& pod, const api::Starts& starts) {
  const auto sample = std::find_if(starts.recent.begin(), starts.recent.end(),
                                   [&](const StartSample& each) { return IsOf(each, pod); });
  return sample != starts.recent.end() ? !sample->engine.has_value()
                                       : pod.injected && !pod.counted.has_value();
}

}  // namespace

void FollowEngineLogs(const PlanContext& context, CountedStarts& out) {
  for (StartSample& sample : out.starts.recent) {
    const auto& reports = context.in.engine_reports;
    const auto report = std::find_if(reports.begin(), reports.end(), [&](const auto& each) {
      return each.pod_uid == sample.pod_uid;
    });
    if (!sample.engine.has_value() && report != reports.end()) {
      sample.engine = report->start;
      out.engines_reported.push_back(sample);
    }
  }
  if (!context.in.settings.engine_logs) {
    return;
  }
  for (const PodView& pod : context.pods) {
    if (pod.of_proof || pod.container == nullptr || pod.container->restarts > 0 ||
        !LacksReport(pod, out.starts)) {
      continue;
    }
    const WallTime ready = ReadyAt(context, pod);
    if (ready == WallTime{} || context.in.now >= ready + kReadWithin) {
      continue;
    }
    if (out.log_reads.size() >= kLogReadsMax) {
      return;
    }
    out.log_reads.push_back({.pod_uid = pod.pod->meta.uid,
                             .pod = pod.pod->meta.name,
                             .container = pod.container->name});
  }
}

}  // namespace cachewarm::plan
