// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/fetches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace cachewarm::agent {

namespace {

int64_t BytesOf(const Fetch& step, const Digest& digest) {
  for (const api::WantedBundle& bundle : step.bundles) {
    if (bundle.digest == digest) {
      return bundle.bytes;
    }
  }
  return 0;
}

}  // namespace

void Fetches::Start(const Fetch& step, const std::shared_ptr<const caches::CacheTable>& table,
                    const DiskLimits& disk, History& history) {
  // Start the fetch at once or not at all: a queued fetch would run before a later one with a
  // higher priority.
  const auto most = std::max(1, context_.workers.threads() - kPublicationWorkers);
  if (running_.contains(step.generation) || std::ssize(running_) >= most) {
    return;
  }
  DiskAmount packed;
  for (const api::WantedBundle& bundle : step.bundles) {
    packed.bytes += bundle.bytes;
  }
  {
    std::lock_guard lock(mutex_);
    reserved_[step.generation] = {.amount = packed, .completed_before = completed_};
  }
  std::stop_source own_stop;
  const bool posted = context_.workers.Post([this, step, table, disk,
                                             own_stop](std::stop_token stop) mutable {
    const std::stop_callback forward(stop, [&own_stop] { own_stop.request_stop(); });
    const MonoTime begun = context_.clock.Monotonic();
    const auto on_progress = [this, &step, begun](const Digest& digest, int64_t done) {
      const Duration taken = context_.clock.Monotonic() - begun;
      std::lock_guard lock(mutex_);
      FetchProgress& progress = progress_[step.generation][digest];
      // Update `seconds` only together with `bytes`, because it is the time that these bytes took.
      if (const int64_t bytes = ReportedBytes(done, BytesOf(step, digest));
          bytes > progress.bytes) {
        progress = {.bytes = bytes, .seconds = std::chrono::duration<double>(taken).count()};
      }
    };
    std::map<std::string, OwnReads> own_reads;
    for (const std::string& source : step.sources) {
      own_reads.emplace(source, context_.watcher.BeginOwnReads(source));
    }
    auto outcome = FetchGeneration(
        {.store = context_.store,
         .root = context_.root,
         .table = *table,
         .clock = context_.clock,
         .step = step,
         .gpu_type = context_.node.gpu_type,
         .cpu_class = context_.node.cpu_class,
         .disk = disk,
         .reserve = [this, &step](
                        const DiskAmount& need,
                        const auto& check) { return Reserve(step.generation, need, check); },
         .threads = context_.transfer_threads,
         .public_key_file = context_.keys.public_key_file,
         .limits = context_.limits,
         .on_opening_source = [&](const std::string& source,
                                  const std::string& path) { own_reads.at(source).Opening(path); },
         .on_progress = on_progress},
        own_stop.get_token());
    {
      std::lock_guard lock(mutex_);
      progress_.erase(step.generation);
      ended_.push_back({step, std::move(outcome)});
    }
    context_.wake();
  });
  if (!posted) {
    std::lock_guard lock(mutex_);
    reserved_.erase(step.generation);
    return;
  }
  running_.emplace(step.generation, step);
  stop_.insert_or_assign(step.generation, std::move(own_stop));
  sources_.insert(step.sources.begin(), step.sources.end());
  history.fetching.insert(step.generation);
}

void Fetches::Cancel(const std::set<std::string>& generations) {
  for (const std::string& generation : generations) {
    if (const auto found = stop_.find(generation);
        found != stop_.end() && found->second.request_stop()) {
      context_.log.Info("fetch cancelled", {{"generation", generation},
                                            {"note", "no mount needs this tree any longer"}});
    }
  }
}

bool Fetches::Collect(History& history) {
  std::vector<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(ended_);
    for (const Ended& each : ended) {
      const auto reservation = reserved_.extract(each.step.generation);
      if (!reservation.empty() && std::holds_alternative<Fetched>(each.outcome)) {
        completed_ = completed_ + reservation.mapped().amount;
      }
    }
  }
  bool completed = false;
  for (const Ended& each : ended) {
    running_.erase(each.step.generation);
    stop_.erase(each.step.generation);
    RecordOutcome(each, history);
    completed |= std::holds_alternative<Fetched>(each.outcome);
  }
  history.fetching.clear();
  sources_.clear();
  for (const auto& [generation, step] : running_) {
    history.fetching.insert(generation);
    sources_.insert(step.sources.begin(), step.sources.end());
  }
  return completed;
}

void Fetches::RecordOutcome(const Ended& ended, History& history) {
  const Fetch& step = ended.step;
  if (const auto* fault = std::get_if<FetchFault>(&ended.outcome)) {
    RecordFault(step, *fault, history);
    return;
  }
  const Fetched& fetched = std::get<Fetched>(ended.outcome);
  history.generations.erase(step.generation);
  for (const api::WantedBundle& bundle : step.bundles) {
    history.bundles.erase({step.mount.uid, bundle.digest});
  }
  context_.metrics.fetches.Add({"ok"});
  context_.metrics.fetched_bytes.Add({}, static_cast<double>(fetched.packed_bytes));
  context_.metrics.reused_bytes.Add({}, static_cast<double>(fetched.reused_bytes));
  context_.metrics.fetch_seconds.Observe({}, fetched.seconds);
  context_.log.Info("generation fetched", {{"cacheWarmup", step.mount.ns + "/" + step.mount.name},
                                           {"generation", step.generation},
                                           {"bundles", static_cast<uint64_t>(step.bundles.size())},
                                           {"files", fetched.files},
                                           {"bytes", fetched.bytes},
                                           {"movedBytes", fetched.packed_bytes},
                                           {"reusedBytes", fetched.reused_bytes},
                                           {"durationSeconds", fetched.seconds}});
}

void Fetches::RecordFault(const Fetch& step, const FetchFault& fault, History& history) {
  if (absl::IsCancelled(fault.status)) {
    return;
  }
  const FaultKind kind = KindOfFault(fault.source, fault.status);
  FailureState& failure = IsBundleFault(kind) && !fault.digest.empty()
                              ? history.bundles[{step.mount.uid, fault.digest}]
                              : history.generations[step.generation];
  RecordFailure(failure, kind, fault.status,
                {.mono = context_.clock.Monotonic(),
                 .wall = context_.clock.Now(),
                 .random = context_.random()});
  failure.lacking = fault.lacking;
  context_.metrics.fetches.Add({"failed"});
  context_.metrics.failures.Add({failure.reason});
  context_.log.Warning("fetch failed", {{"cacheWarmup", step.mount.ns + "/" + step.mount.name},
                                        {"generation", step.generation},
                                        {"digest", fault.digest.ToString()},
                                        {"reason", failure.reason},
                                        {"err", failure.message},
                                        {"failures", failure.count}});
}

absl::Status Fetches::Reserve(const std::string& generation, const DiskAmount& need,
                              const std::function<absl::Status(const DiskAmount& others)>& check) {
  std::lock_guard lock(mutex_);
  Reservation& own = reserved_[generation];
  // Trees that were completed since the limits of this fetch were measured.
  DiskAmount others{.bytes = completed_.bytes - own.completed_before.bytes,
                    .inodes = completed_.inodes - own.completed_before.inodes};
  for (const auto& [other, reservation] : reserved_) {
    others = other == generation ? others : others + reservation.amount;
  }
  CW_RETURN_IF_ERROR(check(others));
  own.amount = need;
  return absl::OkStatus();
}

DiskAmount Fetches::Reserved() const {
  std::lock_guard lock(mutex_);
  DiskAmount sum;
  for (const auto& [generation, reservation] : reserved_) {
    sum = sum + reservation.amount;
  }
  return sum;
}

std::map<Digest, FetchProgress> Fetches::Progress() const {
  std::lock_guard lock(mutex_);
  std::map<Digest, FetchProgress> progress;
  for (const auto& [generation, bundles] : progress_) {
    for (const auto& [digest, each] : bundles) {
      if (each.bytes >= progress[digest].bytes) {
        progress[digest] = each;
      }
    }
  }
  return progress;
}

}  // namespace cachewarm::agent
