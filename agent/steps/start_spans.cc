// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/start_spans.h"

#include <algorithm>

#include "agent/evidence/classify.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"

namespace cachewarm::agent {

std::vector<std::string> MountedTrees(const Context& context, const Tables& tables,
                                      const std::string& warmup_uid, const std::string& run_as,
                                      WallTime started_time) {
  const Mount mount = tables.MountOf(warmup_uid, run_as);
  if (!CheckMount(mount).ok()) {
    return {};
  }
  std::vector<std::string> trees =
      GenerationsAt(ReadActivations(context.root, mount), started_time, kMountedBefore);
  std::erase_if(trees, [&](const std::string& tree) {
    return !context.root.Exists(GenerationPath(tree)).value_or(true);
  });
  return trees;
}

void StartSpans::Update(const api::NodeCacheSpec& desired) {
  for (auto& [id, span] : spans_) {
    span.is_requested = false;
  }
  for (const api::StartWindow& window : desired.starts) {
    const bool has_ended = window.ready_time != WallTime{};
    Note("start/" + window.pod_uid, window,
         has_ended ? std::optional(WindowEnd(window)) : std::nullopt);
  }
  for (const api::CaptureRequest& request : desired.captures) {
    if (!request.generation.empty()) {
      continue;
    }
    Note("capture/" + request.id,
         {.pod_uid = request.pod_uid,
          .warmup_uid = request.warmup_uid,
          .run_as = request.run_as,
          .started_time = request.started_time},
         std::nullopt);
  }
  const WallTime now = context_.clock.Now();
  for (auto& [id, span] : spans_) {
    if (!span.is_requested && !span.end) {
      span.end = now;
    }
  }
  std::erase_if(spans_, [&](const auto& each) {
    return !each.second.is_requested && *each.second.end < now - kKept;
  });
}

void StartSpans::Note(const std::string& id, const api::StartWindow& start,
                      std::optional<WallTime> end) {
  const auto [at, is_new] = spans_.try_emplace(id);
  Span& span = at->second;
  if (is_new) {
    span = {.warmup_uid = start.warmup_uid,
            .run_as = start.run_as,
            .trees =
                MountedTrees(context_, tables_, start.warmup_uid, start.run_as, start.started_time),
            .begin = WindowBegin(start)};
  }
  span.end = end;
  span.is_requested = true;
}

bool StartSpans::IsStarting(const std::string& tree, const Mount& mount, WallTime time) const {
  return std::any_of(spans_.begin(), spans_.end(), [&](const auto& each) {
    const Span& span = each.second;
    return span.warmup_uid == mount.uid && span.run_as == mount.run_as && span.begin <= time &&
           time <= span.end.value_or(WallTime::max()) &&
           (span.trees.empty() ||
            std::find(span.trees.begin(), span.trees.end(), tree) != span.trees.end());
  });
}

std::map<std::string, WallTime> StartSpans::CompiledLate(const std::string& tree,
                                                         const Mount& mount, WallTime begin,
                                                         WallTime end) const {
  return CompiledIn(ReadLate(tree, mount, begin, end), begin, *tables_.Of(mount.uid));
}

EventRecord StartSpans::ReadLate(const std::string& tree, const Mount& mount, WallTime begin,
                                 WallTime end) const {
  EventRecord record = context_.watcher.ReadTree(tree, begin, end);
  std::erase_if(record.events,
                [&](const FileEvent& event) { return IsStarting(tree, mount, event.time); });
  return record;
}

}  // namespace cachewarm::agent
