// SPDX-License-Identifier: Apache-2.0
#include "agent/loop.h"

#include <algorithm>
#include <utility>

#include "agent/sync/report.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/links.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// Maximum number of plans in one iteration. Executed steps change the inventory, so the plan is
// made again after them. A few plans complete all quick steps.
constexpr int kPassesMax = 4;
// Trees that were active within this time are checked for truncated files, not only the trees that
// are active now: kubelet may create the container that follows a crash with the old tree, shortly
// before the link is flipped to a fresh one.
constexpr Duration kRestartedWithin(600'000);

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

api::NodeStatus NodeStatusOf(const GpuObservation& node, const std::string& version) {
  return {.gpu_type = ReportedGpuType(node),
          .cpu_class = node.facts.cpu_class,
          .devices = node.facts.device_count,
          .driver = node.facts.driver_version,
          .agent_version = version,
          .extends_bundles = true};
}

Loop::Loop(const Context& context, GpuObservation gpu, LoopOptions options, Report report)
    : context_(context),
      options_(std::move(options)),
      report_(std::move(report)),
      gpu_(std::move(gpu)),
      watched_(context),
      redis_trees_(tables_, watched_),
      truncated_files_(context),
      fetches_(context),
      durable_trees_(context),
      captures_(context),
      spans_(context, tables_),
      starts_(context, tables_, spans_),
      late_compiles_(context, spans_),
      late_units_(context, tables_, spans_),
      quarantine_(context, options_.version),
      scrub_(context, tables_, options_.scrub),
      evictions_(context, watched_, options_.measure),
      space_(context, {.limit_bytes = options_.limit_bytes,
                       .disk = options_.disk,
                       .measure = options_.measure,
                       .retry = options_.idle}) {
  quarantine_.Restore(history_);
}

Loop::~Loop() {
  context_.workers.Stop();
}

void Loop::SetDesired(std::shared_ptr<const api::NodeCache> node_cache) {
  {
    std::lock_guard lock(mutex_);
    desired_ = std::move(node_cache);
  }
  Wake();
}

void Loop::SetGpu(GpuObservation gpu) {
  {
    std::lock_guard lock(mutex_);
    next_gpu_ = std::move(gpu);
  }
  Wake();
}

void Loop::Wake() {
  {
    std::lock_guard lock(mutex_);
    awake_ = true;
  }
  wake_.notify_all();
}

std::shared_ptr<const api::NodeCache> Loop::TakeDesired() {
  std::lock_guard lock(mutex_);
  awake_ = false;
  if (next_gpu_.has_value()) {
    gpu_ = *std::exchange(next_gpu_, std::nullopt);
  }
  return desired_;
}

void Loop::RunIteration() {
  const MonoTime begin = context_.clock.Monotonic();
  const auto node_cache = TakeDesired();
  const api::NodeCacheSpec nothing;
  const api::NodeCacheSpec& desired = node_cache == nullptr ? nothing : node_cache->spec;
  if (node_cache != nullptr && !has_adopted_) {
    starts_.Adopt(node_cache->status.starts);
    late_compiles_.Adopt(node_cache->status.warmups);
    conditions_ = node_cache->status.conditions;
    has_adopted_ = true;
  }
  const absl::Status reconciled = Reconcile(desired, node_cache != nullptr);
  if (!reconciled.ok()) {
    RecordRootFailure(reconciled);
  }
  // Do not poll while the spec is unknown: `desired` then requests nothing, so Poll() would drop
  // results that the operator has not read yet.
  if (node_cache != nullptr) {
    spans_.Update(desired);
    starts_.Poll(desired.starts);
    late_compiles_.Poll(desired.warmups, watched_.Mounts());
    late_units_.Poll(desired.warmups, watched_.Mounts(), inventory_);
    if (!gpu_.is_gpu_unknown) {
      captures_.Poll(Orders(desired));
    }
    UpdateConditions(desired.node);
  }
  Publish(node_cache == nullptr ? std::string() : node_cache->uid, desired);
  const MonoTime end = context_.clock.Monotonic();
  context_.metrics.syncs.Add({reconciled.ok() ? "ok" : "failed"});
  context_.metrics.sync_seconds.Observe({}, std::chrono::duration<double>(end - begin).count());
  last_iteration_ = end;
}

absl::Status Loop::Reconcile(const api::NodeCacheSpec& desired, bool is_known) {
  tables_.Update(desired.warmups);
  CW_RETURN_IF_ERROR(EnsureRoot());
  UpdateHistory(desired, is_known);
  known_problems_ = std::exchange(mount_problems_, {});
  for (int pass = 0; pass < kPassesMax; ++pass) {
    CW_RETURN_IF_ERROR(Scan());
    plan_ = MakePlan({.desired = desired,
                      .inventory = inventory_,
                      .history = history_,
                      .disk = space_.Limits(evictions_.Total().bytes, fetches_.Reserved()),
                      .now = context_.clock.Monotonic(),
                      .is_known = is_known});
    fetches_.Cancel(plan_.unneeded);
    bool changed = false;
    for (const Step& step : plan_.steps) {
      changed |= Execute(step);
    }
    if (!changed) {
      break;
    }
  }
  if (is_known) {
    CW_RETURN_IF_ERROR(EvictTrees(desired));
  }
  // While the GPU is unknown, RetireForeignTrees() may not have compared the boot yet.
  if (!gpu_.is_gpu_unknown) {
    durable_trees_.Update(inventory_);
  }
  scrub_.Update(inventory_);
  if (is_known) {
    watched_.SetWanted(desired.warmups);
  }
  watched_.Update(inventory_);
  if (options_.serve_redis != nullptr) {
    options_.serve_redis(redis_trees_.Update(inventory_));
  }
  truncated_files_.Sweep(watched_.ActiveWithin(kRestartedWithin));
  return absl::OkStatus();
}

absl::Status Loop::EnsureRoot() {
  absl::Status repaired = RepairRoot(context_.root);
  is_root_gone_ = absl::IsNotFound(repaired);
  return repaired;
}

absl::Status Loop::Scan() {
  CW_ASSIGN_OR_RETURN(inventory_, ScanInventory(context_.root, scanned_));
  if (evictions_.Measure(inventory_)) {
    space_.Measure(true);
    RetryWithoutShortage();
  }
  if (watched_.ForgetGone(inventory_)) {
    // Measure at once: the bytes of the removed tree are free again, and without them the plan may
    // refuse to fetch the tree again.
    space_.Measure(true);
  }
  return absl::OkStatus();
}

void Loop::RecordRootFailure(const absl::Status& why) {
  space_.SetUnusable(Message(why));
  // plan_.next belongs to the previous plan; a deadline in the past would make the loop spin.
  plan_.next = MonoTime::max();
  context_.metrics.failures.Add({std::string(api::reason::kRootUnusable)});
  context_.log.Error("root directory unusable", {{"err", Message(why)}});
}

// Returns true if the step changed the disk, so that a new plan is needed.
bool Loop::Execute(const Step& step) {
  const auto options = [&](const Mount& mount, int renew) {
    return PrepareOptions{.folders = tables_.Of(mount.uid)->Directories(),
                          .now = context_.clock.Now(),
                          .renew = renew,
                          .before_flip = [this, mount](const std::string& generation, bool fresh) {
                            watched_.Add(mount, generation, fresh);
                          }};
  };
  return std::visit(
      Overloaded{[&](const Prepare& prepare) {
                   return CompleteStep(prepare.mount,
                                       PrepareMount(context_.root, prepare.mount,
                                                    options(prepare.mount, prepare.renew)),
                                       "directory prepared");
                 },
                 [&](const Renew& renew) {
                   return CompleteStep(renew.mount,
                                       ActivateFreshTree(context_.root, renew.mount,
                                                         options(renew.mount, renew.renew))
                                           .status(),
                                       "directory renewed");
                 },
                 [&](const Activate& activate) {
                   const bool done = CompleteStep(
                       activate.mount,
                       ActivateGeneration(context_.root, activate.mount, activate.generation,
                                          options(activate.mount, activate.renew)),
                       "generation activated");
                   context_.metrics.activations.Add({}, done ? 1 : 0);
                   return done;
                 },
                 [&](const Discard& discard) {
                   return evictions_.Discard(StagingPath(discard.staging)).ok();
                 },
                 [&](const Fetch& fetch) {
                   // Without a known GPU, it cannot be checked whether a bundle fits.
                   if (!gpu_.is_gpu_unknown) {
                     fetches_.Start(fetch, tables_.Of(fetch.mount.uid),
                                    space_.Limits(evictions_.Total().bytes), history_);
                   }
                   return false;
                 }},
      step);
}

absl::Status Loop::EvictTrees(const api::NodeCacheSpec& desired) {
  std::set<std::string> in_use = fetches_.sources();
  in_use.insert(durable_trees_.running());
  const Evictions::Changes changes = evictions_.Update(desired, inventory_, in_use, plan_.shortage);
  for (const Mount& mount : changes.unlink) {
    Execute(Renew{mount, inventory_.links.at(mount).renew});
  }
  if (changes.evicted == 0 && changes.unlink.empty()) {
    return absl::OkStatus();
  }
  Wake();
  return Scan();
}

// Plans fetches again that failed for lack of space.
void Loop::RetryWithoutShortage() {
  std::erase_if(history_.bundles, [](const auto& each) { return !IsNone(each.second.lacking); });
  std::erase_if(history_.generations,
                [](const auto& each) { return !IsNone(each.second.lacking); });
}

bool Loop::CompleteStep(const Mount& mount, const absl::Status& done, std::string_view what) {
  if (done.ok()) {
    context_.log.Info(what, {{"cacheWarmup", mount.ns + "/" + mount.name},
                             {"warmupUID", mount.uid},
                             {"runAs", mount.run_as}});
    return true;
  }
  mount_problems_[mount] = Message(done);
  const auto known = known_problems_.find(mount);
  if (known != known_problems_.end() && known->second == mount_problems_[mount]) {
    return false;
  }
  context_.metrics.failures.Add({std::string(api::reason::kDirectoryUnusable)});
  context_.log.Error("step failed",
                     {{"step", what}, {"path", MountPath(mount)}, {"err", Message(done)}});
  return false;
}

std::vector<CaptureOrder> Loop::Orders(const api::NodeCacheSpec& desired) const {
  std::vector<CaptureOrder> orders;
  for (const api::CaptureRequest& request : desired.captures) {
    CaptureOrder order{.request = request, .table = tables_.Of(request.warmup_uid)};
    const auto warmup =
        std::find_if(desired.warmups.begin(), desired.warmups.end(),
                     [&](const auto& each) { return each.uid == request.warmup_uid; });
    if (warmup != desired.warmups.end()) {
      order.ns = warmup->ns;
      order.name = warmup->name;
      order.bundles = DigestsOf(warmup->bundles);
    }
    if (!request.generation.empty() && captures_.CanAdvance(request.id)) {
      order.harvest = late_units_.SourceOf(request);
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

void Loop::UpdateHistory(const api::NodeCacheSpec& desired, bool is_known) {
  const bool completed = fetches_.Collect(history_);
  // Do not prune while the spec is unknown: `desired` then lists no bundle, so every failure would
  // be forgotten.
  if (is_known) {
    PruneHistory(desired);
  }
  scrub_.Collect(history_);
  quarantine_.Update(history_);
  space_.Measure(completed);
}

// Removes the failures of bundles that the spec no longer lists.
void Loop::PruneHistory(const api::NodeCacheSpec& desired) {
  std::erase_if(history_.bundles, [&](const auto& each) {
    return std::none_of(desired.warmups.begin(), desired.warmups.end(), [&](const auto& warmup) {
      return warmup.uid == each.first.warmup_uid &&
             std::any_of(warmup.bundles.begin(), warmup.bundles.end(),
                         [&](const auto& bundle) { return bundle.digest == each.first.digest; });
    });
  });
  if (desired.warmups.empty()) {
    history_.generations.clear();
  }
}

void Loop::CountRefusedBundles(const std::vector<api::NodeWarmup>& warmups) {
  for (const std::string_view reason : {api::reason::kOverLimit, api::reason::kDiskFull}) {
    int64_t refused = 0;
    for (const api::NodeWarmup& warmup : warmups) {
      refused += std::count_if(
          warmup.bundles.begin(), warmup.bundles.end(),
          [reason](const api::NodeBundle& bundle) { return bundle.reason == reason; });
    }
    context_.metrics.refused_bundles.Set({std::string(reason)}, static_cast<double>(refused));
  }
}

void Loop::UpdateConditions(const api::NodeOffer& offer) {
  const std::vector<api::Condition> before =
      std::exchange(conditions_, GpuConditions(conditions_, gpu_, offer, context_.clock.Now()));
  for (const api::Condition& condition : conditions_) {
    context_.metrics.conditions.Set({condition.type}, condition.status == "True" ? 1 : 0);
    const api::Condition* known = api::FindCondition(before, condition.type);
    if (known == nullptr || known->status != condition.status) {
      const bool holds = condition.status == "True";
      context_.log.Write(holds ? LogLevel::kWarning : LogLevel::kInfo,
                         "NodeCache condition changed",
                         {{"kind", condition.type},
                          {"result", condition.status},
                          {"reason", condition.reason},
                          {"note", condition.message}});
    }
  }
}

void Loop::Publish(const std::string& target, const api::NodeCacheSpec& desired) {
  int64_t warm = 0;
  int64_t cold = 0;
  for (const auto& [mount, link] : inventory_.links) {
    (link.generation.empty() || IsColdId(link.generation) ? cold : warm) += 1;
  }
  context_.metrics.warm_generations.Set({}, static_cast<double>(warm));
  context_.metrics.cold_generations.Set({}, static_cast<double>(cold));
  context_.metrics.watched_directories.Set({}, context_.watcher.directories());
  context_.metrics.event_overflows.RaiseTo({}, context_.watcher.overflows());
  api::NodeCacheStatus status;
  status.node = NodeStatusOf(gpu_, options_.version);
  status.node.root = space_.Report(evictions_);
  status.conditions = conditions_;
  status.warmups = ReportWarmups({.desired = desired,
                                  .inventory = inventory_,
                                  .history = history_,
                                  .plan = plan_,
                                  .progress = fetches_.Progress(),
                                  .mount_problems = mount_problems_,
                                  .root = status.node.root});
  CountRefusedBundles(status.warmups);
  for (api::NodeWarmup& warmup : status.warmups) {
    if (warmup.message.empty()) {
      warmup.message = tables_.Problem(warmup.uid);
    }
    warmup.late_compiles = late_compiles_.ReportOf(warmup.uid);
    warmup.harvestable = late_units_.OfferOf(warmup.uid);
  }
  status.captures = captures_.Statuses();
  status.starts = starts_.Statuses();
  status.evictable = evictions_.Offers();
  report_(target, std::move(status));
}

MonoTime Loop::NextIteration() const {
  const MonoTime now = context_.clock.Monotonic();
  const bool is_active = captures_.IsWaiting() || starts_.IsWaiting() || !history_.fetching.empty();
  return std::min(std::max(plan_.next, now + Duration(10)),
                  now + (is_active ? options_.active : options_.idle));
}

void Loop::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    RunIteration();
    const MonoTime next = NextIteration();
    std::unique_lock lock(mutex_);
    while (!awake_ && !stop.stop_requested() && context_.clock.Monotonic() < next) {
      context_.clock.WaitUntil(lock, wake_, next, stop);
    }
  }
}

}  // namespace cachewarm::agent
