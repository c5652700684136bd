// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/log_reads.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/runtime/stop_after.h"
#include "operator/engine_log/parse.h"

namespace cachewarm::apply {
namespace {

std::string KeyOf(const std::string& warmup_uid, const std::string& pod_uid) {
  return warmup_uid + "/" + pod_uid;
}

// True if a second attempt would fail in the same way.
bool IsFinal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status);
}

// Returns the label of a metric.
std::string_view ResultName(api::EngineLog log) {
  switch (log) {
    case api::EngineLog::kFound:
      return "found";
    case api::EngineLog::kNothingFound:
      return "nothing_found";
    case api::EngineLog::kUnreadable:
      return "unreadable";
  }
  return "unreadable";
}

// Checks that the log that was just read is that of the first run of the container: a pod of a
// StatefulSet is replaced by one of the same name.
absl::Status RequireFirstRun(codec::Json object, const model::DesiredLogRead& desired) {
  CW_ASSIGN_OR_RETURN(const api::Pod pod,
                      api::DecodePod(std::make_shared<const codec::Json>(std::move(object))));
  const auto container =
      std::find_if(pod.containers.begin(), pod.containers.end(),
                   [&](const auto& each) { return each.name == desired.container; });
  if (pod.meta.uid != desired.pod_uid || container == pod.containers.end() ||
      container->restarts > 0) {
    return absl::FailedPreconditionError("the pod was replaced or its container restarted");
  }
  return absl::OkStatus();
}

}  // namespace

void LogReads::Update(const api::CacheWarmup& warmup,
                      const std::vector<model::DesiredLogRead>& desired) {
  std::set<std::string> wanted;
  for (const model::DesiredLogRead& each : desired) {
    wanted.insert(each.pod_uid);
  }
  std::vector<std::string> added;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(reads_, [&](const auto& each) {
      const Read& read = each.second;
      return read.warmup_uid == warmup.uid && !wanted.contains(read.desired.pod_uid);
    });
    for (const model::DesiredLogRead& each : desired) {
      const std::string key = KeyOf(warmup.uid, each.pod_uid);
      if (reads_.size() >= kLogReadsMax || reads_.contains(key)) {
        continue;
      }
      reads_[key] = {.ns = warmup.ns,
                     .warmup = warmup.name,
                     .warmup_uid = warmup.uid,
                     .desired = each,
                     .answer = std::nullopt};
      added.push_back(key);
    }
  }
  for (const std::string& key : added) {
    deps_.queue.Add(key);
  }
}

void LogReads::Forget(const std::string& warmup_uid) {
  std::lock_guard lock(mutex_);
  std::erase_if(reads_, [&](const auto& each) { return each.second.warmup_uid == warmup_uid; });
}

std::vector<model::EngineReport> LogReads::Reports(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  std::vector<model::EngineReport> reports;
  for (auto each = reads_.lower_bound(warmup_uid + "/");
       each != reads_.end() && each->second.warmup_uid == warmup_uid; ++each) {
    const Read& read = each->second;
    if (read.answer.has_value()) {
      reports.push_back({.pod_uid = read.desired.pod_uid, .start = *read.answer});
    }
  }
  return reports;
}

absl::StatusOr<kube::Outcome> LogReads::Reconcile(const std::string& key, std::stop_token stop) {
  Read read;
  {
    std::lock_guard lock(mutex_);
    const auto found = reads_.find(key);
    if (found == reads_.end() || found->second.answer.has_value()) {
      return kube::Outcome{};
    }
    read = found->second;
  }
  const absl::StatusOr<api::EngineStart> result = ReadLog(read, stop);
  if (stop.stop_requested()) {
    return kube::Outcome{};
  }
  if (!Record(key, result)) {
    return kube::Outcome{.requeue_after = kLogReadRetry};
  }
  deps_.wake(read.ns + "/" + read.warmup);
  return kube::Outcome{};
}

absl::StatusOr<api::EngineStart> LogReads::ReadLog(const Read& read, std::stop_token stop) const {
  const kube::ObjectName pod{.ns = read.ns, .name = read.desired.pod};
  const kube::StopAfter over(deps_.clock, kLogReadLimit, std::move(stop));
  CW_ASSIGN_OR_RETURN(
      const std::string text,
      deps_.client.DoText(kube::PodLog(pod, {.container = read.desired.container,
                                             .limit_bytes = engine_log::kLogBytesMax}),
                          over.token()));
  CW_ASSIGN_OR_RETURN(codec::Json object,
                      deps_.client.Do(kube::Get(kube::kPods, pod), over.token()));
  CW_RETURN_IF_ERROR(RequireFirstRun(std::move(object), read.desired));
  return engine_log::ParseEngineLog(text);
}

bool LogReads::Record(const std::string& key, const absl::StatusOr<api::EngineStart>& result) {
  std::lock_guard lock(mutex_);
  const auto found = reads_.find(key);
  if (found == reads_.end()) {
    return true;  // not desired any more
  }
  Read& read = found->second;
  if (!result.ok() && ++read.failures < 2 && !IsFinal(result.status())) {
    return false;
  }
  read.answer = result.ok() ? *result : api::EngineStart{.log = api::EngineLog::kUnreadable};
  deps_.metrics.engine_log_reads.Add({std::string(ResultName(read.answer->log))});
  if (result.ok()) {
    is_failing_ = false;
  } else if (!std::exchange(is_failing_, true)) {
    LogFailure(read, result.status());
  }
  return true;
}

void LogReads::LogFailure(const Read& read, const absl::Status& failure) {
  deps_.log.Warning(
      absl::IsPermissionDenied(failure)
          ? "no right to read the log of an engine (get pods/log); set the Helm value "
            "engineLogs.enabled"
          : "cannot read the log of an engine; until a read succeeds, further failures are only "
            "counted in cachewarm_engine_log_reads_total",
      {{"cacheWarmup", read.ns + "/" + read.warmup},
       {"pod", read.ns + "/" + read.desired.pod},
       {"err", Message(failure)}});
}

}  // namespace cachewarm::apply
