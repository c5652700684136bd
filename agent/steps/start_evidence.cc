// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/start_evidence.h"

#include <algorithm>
#include <iterator>

#include "agent/evidence/classify.h"
#include "agent/steps/engine_factors.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/root_layout.h"

namespace cachewarm::agent {
namespace {

// A running pod that compiled in this time before a start may also have compiled during the start.
constexpr Duration kStillCompiling{10 * 60'000};

// Returns true if the pod compiled although its tree has a bundle that it read or could have read.
bool IsCompiledAgain(api::StartResult result) {
  return result == api::StartResult::kMiss || result == api::StartResult::kPartial;
}

}  // namespace

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

// Returns true if a running pod compiled in one of the trees shortly before the start. File events
// do not name the process, so an entry that it compiles during the start looks like one of the
// start.
bool Starts::CompiledBefore(const api::StartWindow& window,
                            const std::vector<std::string>& trees) const {
  const Mount mount = tables_.MountOf(window.warmup_uid, window.run_as);
  const WallTime begin = WindowBegin(window);
  return std::any_of(trees.begin(), trees.end(), [&](const std::string& tree) {
    return !spans_.CompiledLate(tree, mount, begin - kStillCompiling, begin - Duration(1)).empty();
  });
}

// Returns true if the pod of `other` may have mounted one of the trees. No trees: any may be meant.
bool Starts::MayMountOneOf(const std::vector<std::string>& trees,
                           const api::StartWindow& other) const {
  const std::vector<std::string> others =
      MountedTrees(context_, tables_, other.warmup_uid, other.run_as, other.started_time);
  return trees.empty() || others.empty() ||
         std::find_first_of(trees.begin(), trees.end(), others.begin(), others.end()) !=
             trees.end();
}

api::StartEvidence Starts::Evaluate(const api::StartWindow& window,
                                    const std::vector<api::StartWindow>& windows) const {
  const std::vector<std::string> trees =
      MountedTrees(context_, tables_, window.warmup_uid, window.run_as, window.started_time);
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
                           return other.pod_uid != window.pod_uid && Overlap(other, window) &&
                                  MayMountOneOf(mounted.used, other);
                         });
  if (IsAmbiguous(seen.result) && (is_shared || CompiledBefore(window, mounted.used))) {
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
  // In a shared tree, the file of key factors may be of the other pod.
  if (IsCompiledAgain(evidence.result) && possible.size() == 1 && !is_shared) {
    evidence.differing_key_factors = DifferingKeyFactors(context_, possible.front(), window);
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
