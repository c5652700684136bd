// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/late_compiles.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cachewarm::agent {
namespace {

constexpr int kReportedMax = 1'000'000;  // the schema's limit

}  // namespace

void LateCompiles::Adopt(const std::vector<api::NodeWarmup>& reported) {
  for (const api::NodeWarmup& warmup : reported) {
    if (warmup.late_compiles.report > 0) {
      warmups_[warmup.uid] = {.report = warmup.late_compiles,
                              .last_report = warmup.late_compiles.report};
    }
  }
}

void LateCompiles::Poll(const std::vector<api::WantedWarmup>& wanted,
                        const std::map<std::string, Mount>& trees) {
  std::map<std::string, Warmup> kept;
  for (const api::WantedWarmup& each : wanted) {
    Warmup& warmup = kept[each.uid] = warmups_[each.uid];
    // A restarted agent may have adopted no report, and its clock may be behind.
    warmup.last_report = std::max(warmup.last_report, each.late_counted);
    if (warmup.report.report <= each.late_counted) {
      warmup.report = {};
    }
  }
  warmups_ = std::move(kept);
  std::erase_if(trees_, [&](const auto& each) { return !trees.contains(each.first); });
  const MonoTime now = context_.clock.Monotonic();
  const bool is_due = polled_at_ == MonoTime{} || now - polled_at_ >= kPollMin;
  for (const auto& [tree, mount] : trees) {
    const auto warmup = warmups_.find(mount.uid);
    if (warmup == warmups_.end()) {
      trees_.erase(tree);
    } else if (is_due || !trees_.contains(tree)) {
      Judge(tree, mount, context_.clock.Now() - kJudgedAfter, warmup->second);
    }
  }
  polled_at_ = is_due ? now : polled_at_;
  for (auto& [uid, warmup] : warmups_) {
    Report(warmup);
  }
}

void LateCompiles::Judge(const std::string& tree, const Mount& mount, WallTime until,
                         Warmup& warmup) {
  const auto [at, is_new] = trees_.try_emplace(tree);
  Tree& state = at->second;
  if (is_new) {
    state.judged_until = context_.clock.Now();
  }
  if (until <= state.judged_until) {
    return;
  }
  const WallTime begin = state.judged_until + Duration(1);
  state.judged_until = until;
  int added = 0;
  for (const auto& [entry, time] : spans_.CompiledLate(tree, mount, begin, until)) {
    if (state.counted.size() < kEntriesMax &&
        state.counted.insert(std::hash<std::string>{}(entry)).second) {
      const bool is_first = warmup.pending + added == 0;
      warmup.first = is_first ? time : std::min(warmup.first, time);
      warmup.last = is_first ? time : std::max(warmup.last, time);
      ++added;
    }
  }
  if (added > 0) {
    warmup.pending = std::min(warmup.pending + added, kReportedMax);
    context_.log.Info("compiles after Ready",
                      {{"warmupUID", mount.uid}, {"generation", tree}, {"written", added}});
  }
}

void LateCompiles::Report(Warmup& warmup) const {
  const int64_t now = context_.clock.Now().time_since_epoch().count();
  const int64_t passed = now - warmup.last_report;  // negative if the clock was set back
  if (warmup.pending == 0 || warmup.report.report > 0 ||
      (passed >= 0 && passed < kReportMin.count())) {
    return;
  }
  warmup.last_report = std::max(now, warmup.last_report + 1);
  // API times are whole seconds.
  warmup.report = {.report = warmup.last_report,
                   .entries = std::exchange(warmup.pending, 0),
                   .first_time = std::chrono::floor<std::chrono::seconds>(warmup.first),
                   .last_time = std::chrono::ceil<std::chrono::seconds>(warmup.last)};
}

api::LateCompiles LateCompiles::ReportOf(const std::string& warmup_uid) const {
  const auto found = warmups_.find(warmup_uid);
  return found == warmups_.end() ? api::LateCompiles() : found->second.report;
}

}  // namespace cachewarm::agent
