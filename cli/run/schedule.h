// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/run/coverage.h"
#include "lib/base/clock.h"

namespace cachewarm::cli {

// Conditions under which the caches of a running command are published.
struct ReadyRules {
  bool by_url = false;  // the command is not ready before its URL has answered
  bool by_log = false;  // not ready before a line of its output has matched
  Duration quiet{0};    // publish only if no cache file has changed for this time
};

// Decides when to publish the cache directory of a running command: as soon as the command is ready
// and the directory has settled, and again when it has changed and settled, at most every 10
// minutes. Pure. Call on one thread.
class PublishSchedule {
 public:
  // `random` in [0, 1) delays each publication by that fraction of `rules.quiet`, so that the first
  // of many equal replicas publishes and the others find its bundle.
  PublishSchedule(const ReadyRules& rules, double random);

  void UrlAnswered() { url_answered_ = true; }
  void LogMatched() { log_matched_ = true; }
  bool IsReady() const;

  // Takes a new snapshot of the tree; returns true if it must be published now.
  bool Observe(const TreeSnapshot& tree, MonoTime now);
  // Records the result of a publication. After a failure the next one is due after 1 minute, then
  // 2, 4, ... up to an hour.
  void Published(const TreeSnapshot& tree, MonoTime now);
  void Failed(MonoTime now);

 private:
  const ReadyRules rules_;
  const Duration delay_;
  bool url_answered_ = false;
  bool log_matched_ = false;
  bool was_ready_ = false;
  bool has_tree_ = false;
  TreeSnapshot tree_;
  TreeSnapshot published_;  // as of the last publication; empty before the first one
  MonoTime changed_{};      // when tree_ last changed
  MonoTime ready_{};        // when the command became ready
  MonoTime not_before_{};
  int failures_ = 0;
};

}  // namespace cachewarm::cli
