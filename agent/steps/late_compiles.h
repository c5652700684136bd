// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/start_spans.h"
#include "agent/sync/warmup_mount.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

// Counts the index entries that running pods of each warmup compile after they were Ready, and
// reports them once each (docs/design/0048-late-compiles.md). Entries count late rather than wrong:
// those of the last kJudgedAfter are left to a later poll, because the operator may not have
// requested the window of a new start yet. A tree counts at most kEntriesMax entries, however
// many its pods write. Call on the sync thread.
class LateCompiles {
 public:
  static constexpr Duration kJudgedAfter{30'000};
  static constexpr Duration kPollMin{10'000};    // between two readings of the file events
  static constexpr Duration kReportMin{60'000};  // between two reports about a warmup
  static constexpr size_t kEntriesMax = 10'000;

  // Both arguments must outlive this object. Update `spans` before each Poll().
  LateCompiles(const Context& context, const StartSpans& spans)
      : context_(context), spans_(spans) {}

  // Restores the reports from before a restart. Entries that were not reported yet are lost.
  void Adopt(const std::vector<api::NodeWarmup>& reported);

  // Reads the file events of `trees`, the watched ones. Drops the reports that the operator has
  // counted (WantedWarmup::late_counted), and everything about warmups that are not in `wanted`.
  void Poll(const std::vector<api::WantedWarmup>& wanted,
            const std::map<std::string, Mount>& trees);

  // Returns the report that the operator has not counted yet; the default if there is none.
  api::LateCompiles ReportOf(const std::string& warmup_uid) const;

 private:
  struct Warmup {
    api::LateCompiles report;
    int64_t last_report = 0;
    // Entries that no report has yet, and when they were compiled.
    int pending = 0;
    WallTime first{};
    WallTime last{};
  };
  struct Tree {
    WallTime judged_until{};
    std::unordered_set<size_t> counted;  // hashes of the paths
  };

  void Judge(const std::string& tree, const Mount& mount, WallTime until, Warmup& warmup);
  void Report(Warmup& warmup) const;

  const Context& context_;
  const StartSpans& spans_;
  std::map<std::string, Warmup> warmups_;  // by uid
  std::map<std::string, Tree> trees_;      // by generation
  MonoTime polled_at_{};
};

}  // namespace cachewarm::agent
