// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/tree/quarantine.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// All that a refusal depends on beside the bundle.
std::string JudgeOf(const Context& context, const std::string& version) {
  const bundle::Limits& limits = context.limits;
  return fmt::format("{} on {} {} within {} {} {} {} {} {} {} {}", version, context.node.gpu_type,
                     context.node.cpu_class, limits.entries_max, limits.file_bytes_max,
                     limits.total_bytes_max, limits.ratio_max, limits.frame_raw_bytes_max,
                     limits.path_bytes_max, limits.name_bytes_max, limits.depth_max);
}

}  // namespace

Quarantine::Quarantine(const Context& context, const std::string& version)
    : context_(context), judge_(JudgeOf(context, version)) {}

void Quarantine::Recall(History& history) {
  const MonoTime mono = context_.clock.Monotonic();
  const WallTime wall = context_.clock.Now();
  for (QuarantinedBundle& bundle : ReadQuarantinedBundles(context_.root)) {
    Setback setback{.failures = bundle.failures,
                    .not_before = MonoTime::max(),
                    .reason = std::move(bundle.reason),
                    .message = std::move(bundle.message),
                    .quarantined = true};
    if (bundle.until.has_value()) {
      // A clock that was wrong then, or is now, makes nobody wait longer than a right one.
      setback.not_before = mono + std::clamp(*bundle.until - wall, Duration(0), kQuarantineMost);
    }
    written_[bundle.name] = setback;
    if (bundle.judge == judge_) {
      context_.log.Info("bundle is in quarantine", {{"uid", bundle.name.warmup_uid},
                                                    {"digest", bundle.name.digest.ToString()},
                                                    {"reason", setback.reason},
                                                    {"message", setback.message}});
      history.bundles[bundle.name] = std::move(setback);
    }
  }
}

void Quarantine::Follow(const History& history) {
  std::erase_if(written_, [&](const auto& each) {
    const auto found = history.bundles.find(each.first);
    return (found == history.bundles.end() || !found->second.quarantined) &&
           RemoveQuarantinedBundle(context_.root, each.first).ok();
  });
  std::map<std::string, double> counts;
  for (const auto& [name, setback] : history.bundles) {
    if (!setback.quarantined) {
      continue;
    }
    counts[setback.reason] += 1;
    const auto found = written_.find(name);
    if (found == written_.end() || found->second.failures != setback.failures) {
      Write(name, setback);
    }
  }
  for (const FaultKind kind : {FaultKind::kRefused, FaultKind::kDamaged}) {
    context_.metrics.quarantined_bundles.Set({ReasonOf(kind)}, counts[ReasonOf(kind)]);
  }
}

void Quarantine::Write(const BundleName& name, const Setback& setback) {
  const WallTime now = context_.clock.Now();
  std::optional<WallTime> until;
  if (setback.not_before != MonoTime::max()) {
    until = now + (setback.not_before - context_.clock.Monotonic());
  }
  const absl::Status written = WriteQuarantinedBundle(context_.root, {.name = name,
                                                                      .reason = setback.reason,
                                                                      .message = setback.message,
                                                                      .failures = setback.failures,
                                                                      .at = now,
                                                                      .until = until,
                                                                      .judge = judge_});
  if (written.ok()) {
    written_[name] = setback;
    return;
  }
  context_.log.Error("quarantine not written down", {{"uid", name.warmup_uid},
                                                     {"digest", name.digest.ToString()},
                                                     {"message", Message(written)}});
}

}  // namespace cachewarm::agent
