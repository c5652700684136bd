// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/tree/journal.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// Returns a text with the version, GPU type, CPU class and limits of this agent. If the text
// changes, a rejected bundle may be accepted.
std::string CriteriaOf(const Context& context, const std::string& version) {
  const bundle::Limits& limits = context.limits;
  return fmt::format("{} on {} {} within {} {} {} {} {} {} {} {}", version, context.node.gpu_type,
                     context.node.cpu_class, limits.entries_max, limits.file_bytes_max,
                     limits.total_bytes_max, limits.ratio_max, limits.frame_raw_bytes_max,
                     limits.path_bytes_max, limits.name_bytes_max, limits.depth_max);
}

}  // namespace

Quarantine::Quarantine(const Context& context, const std::string& version)
    : context_(context), criteria_(CriteriaOf(context, version)) {}

void Quarantine::Restore(History& history) {
  const MonoTime mono = context_.clock.Monotonic();
  const WallTime wall = context_.clock.Now();
  for (QuarantinedBundle& bundle : ReadQuarantinedBundles(context_.root)) {
    FailureState failure{.count = bundle.failures,
                         .not_before = MonoTime::max(),
                         .reason = std::move(bundle.reason),
                         .message = std::move(bundle.message),
                         .quarantined = true};
    if (bundle.until.has_value()) {
      // Cap the remaining quarantine so that clock jumps cannot extend it.
      failure.not_before = mono + std::clamp(*bundle.until - wall, Duration(0), kQuarantineMax);
    }
    written_[bundle.name] = failure;
    if (bundle.criteria == criteria_) {
      context_.log.Info("bundle still quarantined after restart",
                        {{"warmupUID", bundle.name.warmup_uid},
                         {"digest", bundle.name.digest.ToString()},
                         {"reason", failure.reason},
                         {"err", failure.message}});
      history.bundles[bundle.name] = std::move(failure);
    }
  }
}

void Quarantine::Update(const History& history) {
  std::erase_if(written_, [&](const auto& each) {
    const auto found = history.bundles.find(each.first);
    return (found == history.bundles.end() || !found->second.quarantined) &&
           RemoveQuarantinedBundle(context_.root, each.first).ok();
  });
  std::map<std::string, double> counts;
  for (const auto& [name, failure] : history.bundles) {
    if (!failure.quarantined) {
      continue;
    }
    counts[failure.reason] += 1;
    const auto found = written_.find(name);
    if (found == written_.end() || found->second.count != failure.count) {
      Write(name, failure);
    }
  }
  for (const FaultKind kind : {FaultKind::kRejected, FaultKind::kDamaged}) {
    context_.metrics.quarantined_bundles.Set({ReasonOf(kind)}, counts[ReasonOf(kind)]);
  }
}

void Quarantine::Write(const BundleName& name, const FailureState& failure) {
  const WallTime now = context_.clock.Now();
  std::optional<WallTime> until;
  if (failure.not_before != MonoTime::max()) {
    until = now + (failure.not_before - context_.clock.Monotonic());
  }
  const absl::Status written = WriteQuarantinedBundle(context_.root, {.name = name,
                                                                      .reason = failure.reason,
                                                                      .message = failure.message,
                                                                      .failures = failure.count,
                                                                      .at = now,
                                                                      .until = until,
                                                                      .criteria = criteria_});
  if (written.ok()) {
    written_[name] = failure;
    return;
  }
  context_.log.Error("cannot write quarantine record; retrying",
                     {{"warmupUID", name.warmup_uid},
                      {"digest", name.digest.ToString()},
                      {"err", Message(written)}});
}

}  // namespace cachewarm::agent
