// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/capture_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/evidence/classify.h"
#include "agent/steps/engine_factors.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/capture/left_behind.h"

namespace cachewarm::agent {
namespace {

// Number of retries before the state becomes Failed. With backoff they take about seven seconds in
// all.
constexpr int kSilentRetries = 3;

// Returns true if a retry may succeed; all other errors need a repair by an administrator.
bool IsWorthWaiting(const absl::Status& status) {
  return IsRetryable(status) || absl::IsResourceExhausted(status) || absl::IsInternal(status) ||
         absl::IsUnknown(status);
}

// Returns the message for a damaged tree, which is never published: publication would give the bad
// bytes a valid digest and distribute them.
std::string TreeDamaged(const std::string& generation) {
  return fmt::format("the builder's directory {} contains damaged files; another builder is needed",
                     generation);
}

// For a builder whose tree RetireForeignTrees() moved aside: it started with code that was compiled
// elsewhere or that a power cut may have damaged.
constexpr std::string_view kTreeRetired =
    "the builder's directory was replaced after the builder had started, because the node lost "
    "power or has other hardware; another builder is needed";

bool HasTree(const fs::Dir& root, const std::string& generation) {
  return !absl::IsNotFound(root.OpenDir(GenerationPath(generation)).status());
}

api::StartWindow StartOf(const api::CaptureRequest& request) {
  return {.started_time = request.started_time, .ready_time = request.ready_time};
}

WallTime WindowBegin(const api::CaptureRequest& request) {
  return cachewarm::agent::WindowBegin(StartOf(request));
}

}  // namespace

Captures::Captures(const Context& context) : context_(context) {
  for (api::CaptureStatus& status : ReadCaptureRecords(context_.root)) {
    std::string id = status.id;
    captures_[std::move(id)] = Capture{.status = std::move(status), .done = true};
  }
}

void Captures::Poll(const std::vector<CaptureOrder>& orders) {
  Collect();
  Forget(orders);
  for (const CaptureOrder& order : orders) {
    Capture& capture = captures_[order.request.id];
    capture.status.id = order.request.id;
    if (!capture.done && !capture.running) {
      Advance(order, capture);
    }
  }
}

std::vector<api::CaptureStatus> Captures::Statuses() const {
  std::vector<api::CaptureStatus> statuses;
  for (const auto& [id, capture] : captures_) {
    statuses.push_back(capture.status);
  }
  return statuses;
}

bool Captures::CanAdvance(const std::string& id) const {
  const auto found = captures_.find(id);
  return found == captures_.end() ||
         (!found->second.done && !found->second.running &&
          context_.clock.Monotonic() >= found->second.failure.not_before);
}

bool Captures::IsWaiting() const {
  return std::any_of(captures_.begin(), captures_.end(),
                     [](const auto& each) { return !each.second.done; });
}

void Captures::Forget(const std::vector<CaptureOrder>& orders) {
  std::erase_if(captures_, [&](const auto& each) {
    const bool is_requested = std::any_of(orders.begin(), orders.end(), [&](const auto& order) {
      return order.request.id == each.first;
    });
    if (is_requested || each.second.running) {
      return false;
    }
    RemoveCaptureRecord(context_.root, each.first).IgnoreError();
    return true;
  });
}

void Captures::Advance(const CaptureOrder& order, Capture& capture) {
  const api::CaptureRequest& request = order.request;
  const bool is_harvest = !request.generation.empty();
  const MonoTime now = context_.clock.Monotonic();
  if (now < capture.failure.not_before) {
    return;
  }
  if (order.ns.empty()) {
    return Wait(capture, "", "the spec of this NodeCache does not list the warmup yet");
  }
  if (const absl::Status valid = CheckRequest(request, context_.node); !valid.ok()) {
    return RecordError(valid, is_harvest, capture);
  }
  const std::string generation = FindGeneration(order);
  if (generation.empty()) {
    return Wait(capture, "",
                "waiting for the builder's start time, to find out which directory it mounted");
  }
  if (IsDamagedTree(context_.root, generation)) {
    return RefuseTree(capture, is_harvest, TreeDamaged(generation));
  }
  if (!is_harvest && !HasTree(context_.root, generation)) {
    return RefuseTree(capture, is_harvest, std::string(kTreeRetired));
  }
  if (is_harvest && !MayHarvest(order, capture)) {
    return;
  }
  absl::StatusOr<SettleSample> observed = Sample(order, capture, generation, false);
  const Duration settle = Duration(1000) * request.settle_seconds;
  bool quiet = observed.ok() && capture.settle.Observe(*observed, now, settle);
  if (quiet && request.ready_time != WallTime{}) {
    // No event shows that a file grows while its writer has it open.
    observed = Sample(order, capture, generation, true);
    quiet = observed.ok() && capture.settle.Observe(*observed, now, settle);
  }
  if (!observed.ok()) {
    return RecordError(observed.status(), is_harvest, capture);
  }
  const SettleSample& sample = *observed;
  if (request.ready_time == WallTime{}) {
    return Wait(
        capture, "",
        fmt::format("the builder is not ready yet; its directory has {} files", sample.files));
  }
  if (sample.files == 0) {
    return Wait(capture, api::reason::kNothingToCapture,
                "the builder became ready but wrote no file matching spec.caches");
  }
  if (!quiet) {
    return Wait(capture, "",
                fmt::format("the builder's files are still changing: {} files, {} bytes now",
                            sample.files, sample.bytes));
  }
  Start(order, capture, generation);
}

bool Captures::MayHarvest(const CaptureOrder& order, Capture& capture) {
  if (!order.harvest.refusal.empty()) {
    Refuse(capture, api::reason::kHarvestRefused, order.harvest.refusal);
    return false;
  }
  if (!order.harvest.wait.empty()) {
    capture.settle.Restart();
    Wait(capture, "", order.harvest.wait);
    return false;
  }
  // Null if the order was made while the tree was being packed: the next order has the files.
  return order.harvest.used != nullptr;
}

void Captures::Refuse(Capture& capture, std::string_view reason, std::string message) {
  capture.status.state = api::CaptureState::kFailed;
  capture.status.reason = std::string(reason);
  capture.status.message = std::move(message);
  capture.done = true;
}

void Captures::RefuseTree(Capture& capture, bool is_harvest, std::string message) {
  if (is_harvest) {
    return Refuse(capture, api::reason::kHarvestRefused, std::move(message));
  }
  Refuse(capture, api::reason::kNothingToCapture, std::move(message));
  CountFailure(capture, true);
}

void Captures::CountFailure(const Capture& capture, bool is_new) const {
  const api::CaptureStatus& status = capture.status;
  context_.metrics.captures.Add({"failed"});
  context_.metrics.failures.Add({status.reason});
  if (is_new) {
    context_.log.Warning(
        "cannot publish capture",
        {{"podUID", status.id}, {"reason", status.reason}, {"err", status.message}});
  }
}

absl::StatusOr<SettleSample> Captures::Sample(const CaptureOrder& order, Capture& capture,
                                              const std::string& generation, bool forced) const {
  const WallTime now = context_.clock.Now();
  if (!forced && capture.sampled == generation) {
    const EventRecord record = context_.watcher.ReadTree(generation, capture.sampled_at, now);
    if (record.complete && record.events.empty()) {
      return capture.sample;
    }
  }
  CW_ASSIGN_OR_RETURN(const fs::Dir tree, context_.root.OpenDir(GenerationPath(generation)));
  CW_ASSIGN_OR_RETURN(const capture::TreeListing listing, capture::ListTree(tree, *order.table));
  capture.sample = SampleOf(listing.files);
  capture.sampled = generation;
  capture.sampled_at = now;
  return capture.sample;
}

std::string Captures::FindGeneration(const CaptureOrder& order) const {
  if (!order.request.generation.empty()) {
    return order.request.generation;
  }
  if (order.request.started_time == WallTime{}) {
    return {};
  }
  const Mount mount{order.ns, order.name, order.request.warmup_uid, order.request.run_as};
  if (!CheckMount(mount).ok()) {
    return {};
  }
  std::vector<std::string> candidates = GenerationsAt(ReadActivations(context_.root, mount),
                                                      order.request.started_time, kMountedBefore);
  return candidates.size() <= 1 ? (candidates.empty() ? std::string() : candidates.front())
                                : MostUsed(candidates, order);
}

std::string Captures::MostUsed(const std::vector<std::string>& generations,
                               const CaptureOrder& order) const {
  // Choose the tree in which most files were used. If the counts are equal, for example because
  // events were lost, choose the tree with the newest file.
  std::pair<size_t, int64_t> most{0, -1};
  std::string best;
  for (const std::string& generation : generations) {
    const absl::StatusOr<fs::Dir> tree = context_.root.OpenDir(GenerationPath(generation));
    if (!tree.ok()) {
      continue;
    }
    const auto observed = capture::ListTree(*tree, *order.table);
    const EventRecord record =
        context_.watcher.ReadTree(generation, WindowBegin(order.request), context_.clock.Now());
    const std::pair<size_t, int64_t> score{
        UsedIn(record, *order.table).paths.size(),
        observed.ok() ? SampleOf(observed->files).newest_mtime_ns : 0};
    if (score > most) {
      most = score;
      best = generation;
    }
  }
  return best;
}

void Captures::Start(const CaptureOrder& order, Capture& capture, const std::string& generation) {
  const bool posted = context_.workers.Post([this, order, generation](std::stop_token stop) {
    auto publish = [&]() -> absl::StatusOr<Published> {
      CW_ASSIGN_OR_RETURN(const fs::Dir tree, context_.root.OpenDir(GenerationPath(generation)));
      const EventRecord record =
          context_.watcher.ReadTree(generation, WindowBegin(order.request), context_.clock.Now());
      // A retry must publish the same digest, so a file of a later start must not count.
      capture::EngineFactors factors = EngineFactorsIn(
          context_, generation, WindowBegin(order.request), WindowEnd(StartOf(order.request)));
      OwnReads own_reads = context_.watcher.BeginOwnReads(generation);
      return PublishTree({.store = context_.store,
                          .tree = tree,
                          .table = *order.table,
                          .node = context_.node,
                          .request = order.request,
                          .ns = order.ns,
                          .name = order.name,
                          .older = order.bundles,
                          .used = order.harvest.used != nullptr ? *order.harvest.used
                                                                : UsedIn(record, *order.table),
                          .threads = context_.transfer_threads,
                          .private_key_file = context_.keys.private_key_file,
                          .engine_factors = std::move(factors),
                          .on_opening = [&](const std::string& path) { own_reads.Opening(path); }},
                         stop);
    };
    absl::StatusOr<Published> outcome = publish();
    {
      std::lock_guard lock(mutex_);
      ended_.push_back(
          {order.request.id, generation, order.request, order.table, std::move(outcome)});
    }
    context_.wake();
  });
  if (posted) {
    capture.running = true;
    // If this is a retry, keep the error of the failed attempt in the status until a retry
    // succeeds.
    if (capture.status.state == api::CaptureState::kWaiting) {
      capture.status.state = api::CaptureState::kPacking;
      capture.status.reason.clear();
      capture.status.message.clear();
    }
    capture.settled_at = context_.clock.Monotonic();
  }
}

void Captures::Collect() {
  std::vector<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  for (const Ended& each : ended) {
    Capture& capture = captures_[each.id];
    capture.running = false;
    RecordOutcome(each, capture);
  }
}

void Captures::RecordOutcome(const Ended& ended, Capture& capture) {
  const bool is_harvest = !ended.request.generation.empty();
  if (ended.outcome.ok() && IsDamagedTree(context_.root, ended.generation)) {
    RefuseTree(capture, is_harvest, TreeDamaged(ended.generation));
  } else if (ended.outcome.ok()) {
    RecordPublished(ended, capture);
  } else if (!absl::IsCancelled(ended.outcome.status())) {
    RecordError(ended.outcome.status(), is_harvest, capture);
  }
}

void Captures::RecordError(const absl::Status& status, bool is_harvest, Capture& capture) {
  if (absl::IsAborted(status)) {
    ++capture.changed;
    capture.settle.Restart();
    context_.metrics.captures.Add({"changed"});
    return Wait(capture, api::reason::kCacheNotSettled,
                fmt::format("{} ({} times)", Message(status), capture.changed));
  }
  if (is_harvest && !IsWorthWaiting(status)) {
    return Refuse(capture, api::reason::kHarvestRefused, Message(status));
  }
  const bool is_new = capture.failure.message != Message(status);
  RecordFailure(capture.failure, FaultKind::kStore, status,
                {.mono = context_.clock.Monotonic(),
                 .wall = context_.clock.Now(),
                 .random = context_.random()});
  // NOT_FOUND means that there is no file to publish yet. Keep waiting, because the engine may
  // compile only at its first request; the operator limits the wait.
  if (absl::IsNotFound(status)) {
    return Wait(capture, api::reason::kNothingToCapture, Message(status));
  }
  const bool is_silent = IsWorthWaiting(status) && capture.failure.count <= kSilentRetries;
  capture.status.state = is_silent ? api::CaptureState::kPacking : api::CaptureState::kFailed;
  capture.status.reason = std::string(api::reason::kPublishFailed);
  capture.status.message = Message(status);
  CountFailure(capture, is_new);
}

void Captures::RecordPublished(const Ended& ended, Capture& capture) {
  const Published& published = *ended.outcome;
  const api::StartWindow window = StartOf(ended.request);
  const Observation seen = ClassifyStart(
      context_.watcher.ReadTree(ended.generation, WindowBegin(ended.request), WindowEnd(window)),
      window, *ended.table);
  const double span = std::chrono::duration<double>(seen.compile_span).count();
  capture.status = {.id = ended.id,
                    .state = api::CaptureState::kPushed,
                    .digest = published.publication.digest,
                    .bytes = published.publication.bytes,
                    .files = static_cast<int>(published.publication.files),
                    .native = published.native,
                    .compile_seconds = span > 0 ? span : published.stored_compile_seconds,
                    .left_behind = published.left_behind};
  capture.done = true;
  // Ignore a failed write: without the record, a restarted agent publishes again and gets the same
  // digest.
  WriteCaptureRecord(context_.root, capture.status).IgnoreError();
  const double seconds =
      std::chrono::duration<double>(context_.clock.Monotonic() - capture.settled_at).count();
  context_.metrics.captures.Add({"pushed"});
  context_.metrics.published_bytes.Add({}, static_cast<double>(capture.status.bytes));
  context_.metrics.publish_seconds.Observe({}, seconds);
  context_.log.Info("bundle published",
                    {{"podUID", ended.id},
                     {"bundleKey", ended.request.key},
                     {"digest", capture.status.digest.ToString()},
                     {"files", capture.status.files},
                     {"bytes", capture.status.bytes},
                     {"leftOut", static_cast<uint64_t>(published.truncated.size())},
                     {"compileSeconds", capture.status.compile_seconds},
                     {"durationSeconds", seconds}});
  if (published.left_behind.files > 0) {
    context_.log.Warning("the bundle lacks files of the builder that match no cache kind",
                         {{"podUID", ended.id},
                          {"bundleKey", ended.request.key},
                          {"files", published.left_behind.files},
                          {"bytes", published.left_behind.bytes},
                          {"note", capture::ToText(published.left_behind)}});
  }
}

void Captures::Wait(Capture& capture, std::string_view reason, std::string message) {
  capture.status.state = api::CaptureState::kWaiting;
  capture.status.reason = std::string(reason);
  capture.status.message = std::move(message);
}

}  // namespace cachewarm::agent
