// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/start_evidence.h"

#include <algorithm>
#include <iterator>

#include "agent/evidence/classify.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"

namespace cachewarm::agent {

void Starts::Adopt(const std::vector<api::StartEvidence>& reported) {
  for (const api::StartEvidence& evidence : reported) {
    evaluated_.try_emplace(evidence.pod_uid, evidence);
  }
}

void Starts::Poll(const std::vector<api::StartWindow>& windows) {
  std::erase_if(evaluated_, [&](const auto& each) {
    return std::none_of(windows.begin(), windows.end(),
                        [&](const auto& window) { return window.pod_uid == each.first; });
  });
  is_waiting_ = false;
  for (const api::StartWindow& window : windows) {
    if (evaluated_.contains(window.pod_uid)) {
      continue;
    }
    if (window.ready_time == WallTime{} || context_.clock.Now() < WindowEnd(window)) {
      is_waiting_ = true;
      continue;
    }
    const api::StartEvidence evidence = Evaluate(window, windows);
    evaluated_.emplace(window.pod_uid, evidence);
    context_.metrics.starts.Add({std::string(api::Name(evidence.result))});
    context_.log.Info("start observed", {{"podUID", window.pod_uid},
                                         {"warmupUID", window.warmup_uid},
                                         {"result", api::Name(evidence.result)},
                                         {"opened", evidence.opened},
                                         {"written", evidence.written},
                                         {"nativeBuilt", evidence.native_built},
                                         {"compileSeconds", evidence.compile_seconds}});
  }
}

// Returns the trees that the pod may have mounted; empty if none is recorded. A tree that was
// evicted is none of them: the operator confirms only trees that no pod can have mounted.
std::vector<std::string> Starts::MountedTrees(const api::StartWindow& window) const {
  const Mount mount = tables_.MountOf(window.warmup_uid, window.run_as);
  if (!CheckMount(mount).ok()) {
    return {};
  }
  std::vector<std::string> trees =
      GenerationsAt(ReadActivations(context_.root, mount), window.started_time, kMountedBefore);
  std::erase_if(trees, [&](const std::string& tree) {
    return !context_.root.Exists(GenerationPath(tree)).value_or(true);
  });
  return trees;
}

// Reads the events of the trees that the pod may have mounted, and of no other: a pod that still
// uses an earlier tree may compile there at the same time.
Starts::MountedEvents Starts::ReadMounted(const api::StartWindow& window,
                                          const std::vector<std::string>& trees) const {
  const WallTime begin = WindowBegin(window);
  const WallTime end = WindowEnd(window);
  if (trees.empty()) {
    return {.record = context_.watcher.Read(window.warmup_uid, window.run_as, begin, end)};
  }
  MountedEvents out;
  for (const std::string& tree : trees) {
    EventRecord part = context_.watcher.ReadTree(tree, begin, end);
    if (!part.events.empty()) {
      out.used.push_back(tree);
    }
    out.record.complete = out.record.complete && part.complete;
    out.record.events.insert(out.record.events.end(), std::make_move_iterator(part.events.begin()),
                             std::make_move_iterator(part.events.end()));
  }
  SortByTime(out.record);
  return out;
}

api::StartEvidence Starts::Evaluate(const api::StartWindow& window,
                                    const std::vector<api::StartWindow>& windows) const {
  const std::vector<std::string> trees = MountedTrees(window);
  const MountedEvents mounted = ReadMounted(window, trees);
  const Observation seen = ClassifyStart(mounted.record, window, *tables_.Of(window.warmup_uid));
  api::StartEvidence evidence{
      .pod_uid = window.pod_uid,
      .result = seen.result,
      .opened = seen.entries_opened,
      .written = seen.entries_written,
      .native_built = seen.native_built,
      .compile_seconds = std::chrono::duration<double>(seen.compile_span).count(),
      .compiled_after_seconds = std::chrono::duration<double>(seen.compiled_after).count()};
  const bool is_shared = mounted.used.size() > 1 ||
                         std::any_of(windows.begin(), windows.end(), [&](const auto& other) {
                           return other.pod_uid != window.pod_uid && Overlap(other, window);
                         });
  if (is_shared && IsAmbiguous(seen.result)) {
    evidence.result = api::StartResult::kUnknown;
  }
  // A miss is expected if the tree that the pod used was without a bundle.
  const std::vector<std::string>& possible = mounted.used.empty() ? trees : mounted.used;
  const bool had_no_bundle =
      !possible.empty() && std::all_of(possible.begin(), possible.end(),
                                       [](const std::string& id) { return IsColdId(id); });
  if (evidence.result == api::StartResult::kMiss && had_no_bundle) {
    evidence.result = api::StartResult::kCold;
  }
  return evidence;
}

std::vector<api::StartEvidence> Starts::Statuses() const {
  std::vector<api::StartEvidence> statuses;
  for (const auto& [uid, evidence] : evaluated_) {
    statuses.push_back(evidence);
  }
  return statuses;
}

bool IsAmbiguous(api::StartResult result) {
  switch (result) {
    case api::StartResult::kPartial:
    case api::StartResult::kHollow:
      return true;
    case api::StartResult::kBuilder:
    case api::StartResult::kCold:
    case api::StartResult::kHit:
    case api::StartResult::kMiss:
    case api::StartResult::kInert:
    case api::StartResult::kUnknown:
      return false;
  }
  return false;
}

bool Overlap(const api::StartWindow& a, const api::StartWindow& b) {
  const auto ends_before = [](const api::StartWindow& first, const api::StartWindow& second) {
    return first.ready_time != WallTime{} && WindowEnd(first) < WindowBegin(second);
  };
  return a.warmup_uid == b.warmup_uid && a.run_as == b.run_as && !ends_before(a, b) &&
         !ends_before(b, a);
}

}  // namespace cachewarm::agent
