// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_cluster.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/digest.h"
#include "operator/plan/nodes/decision.h"
#include "operator/plan/scheduling/pod_shape.h"

namespace cachewarm::sim {

namespace {

constexpr int kSettle = 2;

}  // namespace

SimCluster::SimCluster(const SimSetup& setup) : setup_(setup), random_(setup.seed) {
  replicas_ = setup.replicas;
  builder_.Now(now_);
  builder_.warmup().spec.compile.settle_seconds = 1;
  builder_.warmup().spec.gate.mode = setup.mode;
  builder_.in().settings.fresh_nodes_tainted = setup.fresh_nodes_tainted;
  if (setup.devices > 0) {
    builder_.pod_template()["spec"]["containers"][0]["resources"] = {
        {"limits", {{"nvidia.com/gpu", setup.devices}}}};
  }
}

void SimCluster::AddNode(const NodeSetup& node) {
  NodeSetup fresh = node;
  fresh.prepared = false;
  nodes_[node.name] = fresh;
  builder_.Node(fresh);
  api::Node& object = builder_.node(node.name);
  object.meta.created = fakes::At(now_);
  object.ready_since = fakes::At(now_);
  if (setup_.fresh_nodes_tainted) {
    object.taints = {{.key = "cachewarm.io/warming", .effect = "NoSchedule"}};
  }
}

void SimCluster::RemoveNode(const std::string& name) {
  std::erase_if(builder_.in().nodes,
                [&](const model::NodeView& view) { return view.node->meta.name == name; });
  nodes_.erase(name);
  std::erase_if(pods_, [&](const auto& pod) { return pod.second.setup.node == name; });
}

void SimCluster::Rollout(const std::string& revision, const std::string& image) {
  revision_ = revision;
  image_ = image;
  builder_.pod_template()["spec"]["containers"][0]["image"] = image;
  builder_.pod_template()["spec"]["containers"][0]["args"] = {revision};
}

size_t SimCluster::pods_injected() const {
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(), [](const auto& pod) {
    return pod.second.setup.injected && pod.second.setup.job.empty();
  }));
}

size_t SimCluster::pods_ready() const {
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(), [](const auto& pod) {
    return pod.second.setup.ready && pod.second.setup.job.empty();
  }));
}

size_t SimCluster::pods_held() const {
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(),
                                           [](const auto& pod) { return pod.second.setup.held; }));
}

int SimCluster::elections(const std::string& key) const {
  const auto found = elected_.find(key);
  return found == elected_.end() ? 0 : static_cast<int>(found->second.size());
}

int SimCluster::hits_after(int second) const {
  return static_cast<int>(std::count_if(results_.begin(), results_.end(), [&](const auto& each) {
    return each.first >= second && each.second == api::StartResult::kHit;
  }));
}

int SimCluster::misses_after(int second) const {
  return static_cast<int>(std::count_if(results_.begin(), results_.end(), [&](const auto& each) {
    return each.first >= second && each.second != api::StartResult::kHit &&
           each.second != api::StartResult::kBuilder;
  }));
}

int SimCluster::counted(api::StartResult result) const {
  return static_cast<int>(std::count_if(results_.begin(), results_.end(),
                                        [&](const auto& each) { return each.second == result; }));
}

int SimCluster::FreeSlots(const std::string& node) const {
  const auto used = std::count_if(pods_.begin(), pods_.end(),
                                  [&](const auto& pod) { return pod.second.setup.node == node; });
  return nodes_.at(node).pods - static_cast<int>(used);
}

int SimCluster::FreeDevices(const std::string& node) const {
  int free = nodes_.at(node).gpus;
  for (const auto& [name, pod] : pods_) {
    free -= pod.setup.node == node ? pod.setup.gpus : 0;
  }
  return free;
}

// A restarted operator is a new holder: the Lease still names the old process.
void SimCluster::OperatorDown(bool down) {
  if (down && !operator_down_) {
    KillLeader();
  } else if (!down && operator_down_) {
    alive_since_ = now_;
  }
  operator_down_ = down;
}

// A graceful stop releases the Lease, a kill does not.
bool SimCluster::Crashes() {
  if (!Chance(setup_.operator_crash_chance)) {
    return false;
  }
  if (Chance(0.5)) {
    KillLeader();
  }
  return true;
}

bool SimCluster::Chance(double chance) {
  return std::uniform_real_distribution<>(0, 1)(random_) < chance;
}

void SimCluster::Violate(const std::string& what) {
  violations_.push_back("second " + std::to_string(now_) + ": " + what);
}

void SimCluster::RunAgents() {
  for (const auto& [name, setup] : nodes_) {
    if (setup.agent) {
      RunAgent(name);
    }
  }
}

void SimCluster::RunFetches(const std::string& node, const api::WantedWarmup& wanted) {
  const bool fails = store_down_ || broken_.contains(node);
  std::vector<api::NodeBundle> bundles;
  for (const api::WantedBundle& bundle : wanted.bundles) {
    const std::string place = node + "/" + bundle.digest.ToString();
    const auto known = class_of_digest_.find(bundle.digest.ToString());
    if (known == class_of_digest_.end() ||
        known->second != builder_.cache(node).status.node.cpu_class) {
      Violate("node " + node + " was given a bundle of another CPU class");
    }
    if (!fetched_at_.contains(place) && !fails) {
      fetched_at_[place] = now_ + setup_.fetch_seconds;
    }
    const auto at = fetched_at_.find(place);
    api::NodeBundle& out = bundles.emplace_back(api::NodeBundle{.digest = bundle.digest});
    if (at != fetched_at_.end() && now_ >= at->second) {
      out.state = api::BundleState::kActive;
      out.fetch_seconds = setup_.fetch_seconds;
    } else if (fails) {
      out.state = api::BundleState::kFailed;
      out.reason = "FetchFailed";
    } else {
      out.state = api::BundleState::kFetching;
      out.fetch_seconds = setup_.fetch_seconds - (at->second - now_);
      out.bytes_done =
          bundle.bytes * static_cast<int64_t>(out.fetch_seconds) / setup_.fetch_seconds;
    }
  }
  builder_.reported(node).bundles = bundles;
}

void SimCluster::RunAgent(const std::string& node) {
  api::NodeCache& cache = builder_.cache(node);
  api::NodeWarmup& reported = builder_.reported(node);
  cache.status.captures.clear();
  cache.status.starts.clear();
  for (const api::WantedWarmup& wanted : cache.spec.warmups) {
    reported.prepared = wanted.run_as;
    RunFetches(node, wanted);
  }
  for (const api::CaptureRequest& request : cache.spec.captures) {
    api::CaptureStatus answer{.id = request.id};
    if (request.ready_time != WallTime{} && !store_down_) {
      const int at = pushed_at_.emplace(request.id, now_ + kSettle).first->second;
      if (now_ >= at) {
        answer.state = api::CaptureState::kPushed;
        answer.digest = DigestOf(request.id);
        answer.bytes = 100;
        answer.files = 1;
        answer.compile_seconds = setup_.cold_seconds - setup_.warm_seconds;
        const bool is_new =
            class_of_digest_.emplace(answer.digest.ToString(), request.factors.cpu_class).second;
        node_of_digest_.emplace(answer.digest.ToString(), node);
        if (is_new && hanging_left_ > 0) {
          --hanging_left_;
          hanging_digests_.insert(answer.digest.ToString());
        }
      }
    }
    cache.status.captures.push_back(answer);
  }
  for (const api::StartWindow& window : cache.spec.starts) {
    const auto pod = std::find_if(pods_.begin(), pods_.end(), [&](const auto& each) {
      return "uid-" + each.first == window.pod_uid;
    });
    if (window.ready_time != WallTime{} && pod != pods_.end()) {
      cache.status.starts.push_back(
          {.pod_uid = window.pod_uid,
           .result = pod->second.warm ? api::StartResult::kHit : api::StartResult::kMiss,
           .compile_seconds =
               pod->second.warm ? 0.0 : double(setup_.cold_seconds - setup_.warm_seconds),
           .compiled_after_seconds = pod->second.warm ? 0.0 : double(setup_.cold_seconds)});
    }
  }
}

void SimCluster::Publish() {
  builder_.Now(now_);
  builder_.in().workload.replicas = replicas_;
  const bool rolls = setup_.strategy == Strategy::kRolling || setup_.strategy == Strategy::kGroup;
  const bool is_rolled_out = std::all_of(pods_.begin(), pods_.end(), [&](const auto& pod) {
    return !pod.second.setup.job.empty() || pod.second.setup.revision == revision_;
  });
  const int required = std::max(replicas_ - setup_.unavailable_max, setup_.budget);
  builder_.in().constraints = {.recreate = setup_.strategy == Strategy::kRecreate,
                               .in_order = setup_.strategy == Strategy::kInOrder,
                               .job_deadline = setup_.strategy == Strategy::kJob,
                               .progress_deadline = std::chrono::seconds(setup_.progress_deadline),
                               .available = static_cast<int64_t>(pods_ready()),
                               .required = rolls ? std::min(required, replicas_) : 0,
                               .pods_most = rolls ? replicas_ + (is_rolled_out ? 0 : 1) : 0,
                               .quota_exceeded = over_quota_since_ > 0};
  builder_.in().pods.clear();
  for (const auto& [name, pod] : pods_) {
    builder_.Pod(pod.setup);
  }
  for (model::NodeView& view : builder_.in().nodes) {
    view.free["pods"] = FreeSlots(view.node->meta.name);
    if (const int devices = nodes_.at(view.node->meta.name).gpus; devices > 0) {
      view.free["nvidia.com/gpu"] = FreeDevices(view.node->meta.name);
    }
  }
}

bool SimCluster::Apply(const model::Plan& plan) {
  if (Crashes()) {
    return false;
  }
  version_ += plan.status_changed ? 1 : 0;
  builder_.status() = plan.status;
  for (const api::StartSample& sample : plan.starts_counted) {
    results_.emplace_back(now_, sample.result);
  }
  for (const api::BuilderStatus& entry : plan.status.builders) {
    if (!entry.node.empty()) {
      elected_[entry.key].insert(entry.pod_uid);
    }
  }
  if (Crashes()) {
    return false;
  }
  if (plan.set_inject_label) {
    if (*plan.set_inject_label) {
      builder_.warmup().labels["cachewarm.io/inject"] = "true";
    } else {
      builder_.warmup().labels.erase("cachewarm.io/inject");
    }
  }
  for (const model::NodeEntries& wants : plan.nodes) {
    if (Crashes()) {
      return false;
    }
    if (nodes_.contains(wants.node)) {
      builder_.cache(wants.node).spec = wants.spec;
    }
  }
  return ApplyJobs(plan) && ApplyReleases(plan);
}

bool SimCluster::ApplyJobs(const model::Plan& plan) {
  for (const model::DesiredJob& job : plan.jobs_to_create) {
    auto& jobs = builder_.in().jobs;
    if (std::any_of(jobs.begin(), jobs.end(), [&](const auto& j) { return j.name == job.name; })) {
      continue;
    }
    jobs.push_back({.name = job.name, .uid = "j-" + job.name, .created = fakes::At(now_)});
    const auto& terms =
        (*job.object)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                     ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    jobs_[job.name] = terms[0]["matchExpressions"][0]["values"].get<std::vector<std::string>>();
  }
  RunJobs();
  for (const std::string& name : plan.jobs_to_delete) {
    std::erase_if(builder_.in().jobs, [&](const auto& job) { return job.name == name; });
    jobs_.erase(name);
    pods_.erase(name + "-pod");
  }
  return true;
}

bool SimCluster::ApplyReleases(const model::Plan& plan) {
  for (const model::PodAnnotation& note : plan.annotations) {
    if (Crashes()) {
      return false;
    }
    if (const auto pod = pods_.find(note.pod); pod != pods_.end()) {
      pod->second.setup.annotations[note.key] = note.value;
    }
  }
  for (const model::GateRelease& release : plan.releases) {
    const auto pod = pods_.find(release.pod->meta.name);
    if (Crashes()) {
      return false;
    }
    if (pod == pods_.end() || !pod->second.setup.held) {
      continue;  // the patch tests uid and gate
    }
    Release(pod->second);
    pod->second.preferred = release.preferred;
    pod->second.excluded = release.excluded;
  }
  return true;
}

// Like operator/controllers/nodes.
void SimCluster::RunTaints() {
  for (const model::NodeView& view : builder_.in().nodes) {
    if (!plan::HasStartupTaint(*view.node)) {
      continue;
    }
    model::Snapshot alone = builder_.in();
    alone.nodes = {view};
    const plan::NodeDecision verdict = plan::EvaluateNode(
        {.now = builder_.in().now, .view = view, .readiness = {plan::EvaluateReadiness(alone)}});
    if (!verdict.remove_taints_for.empty()) {
      builder_.node(view.node->meta.name).taints.clear();
    }
  }
}

void SimCluster::RunOperator() {
  if (operator_down_ || now_ < leaderless_until_) {
    idle_seconds_ = 0;
    return;
  }
  RunTaints();
  model::Plan plan = builder_.Decide();
  if (plan.dry_run) {
    builder_.in().dry_run = {
        .fingerprint = plan.dry_run->fingerprint,
        .time = builder_.in().now,
        .unmodified = model::DryRunResult::kAllowed,
        .injected = model::DryRunResult::kAllowed,
        .admitted = api::AdmittedContainer{plan.dry_run->revision, RunningImage(), setup_.devices}};
  }
  const bool wants = plan.status_changed || plan.set_inject_label || !plan.nodes.empty() ||
                     !plan.jobs_to_create.empty() || !plan.jobs_to_delete.empty() ||
                     !plan.annotations.empty() || !plan.releases.empty() || plan.dry_run;
  idle_seconds_ = wants ? 0 : idle_seconds_ + 1;
  const int64_t version = version_;
  if (earlier_plan_ && Chance(setup_.stale_plan_chance)) {
    // A status write with an old resourceVersion is rejected, and the whole plan is dropped.
    const bool stale = earlier_plan_->status_changed && earlier_version_ != version_;
    if (!stale) {
      earlier_plan_->status = earlier_plan_->status_changed ? earlier_plan_->status : status();
      Apply(*earlier_plan_);
    }
  } else {
    Apply(plan);
  }
  earlier_plan_ = std::move(plan);
  earlier_version_ = version;
}

void SimCluster::CheckFetchSlots() {
  std::set<std::string> fetching;
  for (const auto& [place, done] : fetched_at_) {
    if (done > now_) {
      fetching.insert(place.substr(0, place.find('/')));
    }
  }
  if (fetching.size() > static_cast<size_t>(builder_.in().settings.fetch_nodes_max)) {
    Violate(std::to_string(fetching.size()) + " nodes fetch at the same time");
  }
}

// Checks that a bundle that was never published is at most on the node that captured it.
void SimCluster::CheckProven() {
  for (const api::BundleStatus& bundle : builder_.status().bundles) {
    published_.insert(bundle.digest.ToString());
  }
  for (const auto& [name, setup] : nodes_) {
    for (const api::WantedWarmup& wanted : builder_.cache(name).spec.warmups) {
      for (const api::WantedBundle& bundle : wanted.bundles) {
        const std::string digest = bundle.digest.ToString();
        if (!published_.contains(digest) && node_of_digest_[digest] != name) {
          Violate("node " + name + " was given a bundle that is not published");
        }
      }
    }
  }
}

void SimCluster::Check() {
  CheckHeld();
  CheckFetchSlots();
  CheckProven();
  CheckJobs();
  std::set<std::string> running;
  for (const api::BuilderStatus& entry : builder_.status().builders) {
    const bool runs = entry.state == api::BuilderState::kElected ||
                      entry.state == api::BuilderState::kCapturing ||
                      entry.state == api::BuilderState::kProving;
    if (runs && !running.insert(entry.key).second) {
      Violate("two builders for key " + entry.key.substr(0, 8));
    }
  }
  const api::StartCounts& counts = builder_.status().starts.counts;
  const int64_t all = counts.builder + counts.cold + counts.hit + counts.partial + counts.miss +
                      counts.inert + counts.hollow + counts.unknown;
  if (all > static_cast<int64_t>(ended_.size())) {
    Violate("a start was counted twice");
  }
}

void SimCluster::RunSecond() {
  ++now_;
  RunWorkload();
  RunJobs();
  RunAutoscaler();
  Schedule();
  RunKubelets();
  Publish();
  RunAgents();
  RunOperator();
  RunStandby();
  RunCronJob();
  Check();
}

void SimCluster::RunSeconds(int count) {
  for (int i = 0; i < count; ++i) {
    RunSecond();
  }
}

bool SimCluster::Settle(int limit) {
  const int idle_enough = 2 * setup_.cold_seconds;  // a compile is idle time too
  idle_seconds_ = 0;
  for (int i = 0; i < limit && idle_seconds_ < idle_enough; ++i) {
    RunSecond();
  }
  return idle_seconds_ >= idle_enough;
}

std::optional<int> SimCluster::UntilReady(int limit) {
  for (int i = 0; i < limit; ++i) {
    RunSecond();
    const auto right = std::count_if(pods_.begin(), pods_.end(), [&](const auto& pod) {
      return pod.second.setup.ready && pod.second.setup.revision == revision_;
    });
    const auto all = std::count_if(pods_.begin(), pods_.end(),
                                   [](const auto& pod) { return pod.second.setup.job.empty(); });
    if (right == replicas_ && all == replicas_) {
      return now_;
    }
  }
  return std::nullopt;
}

void SimCluster::AddUninjectedPod(const std::string& name) {
  pods_[name] = {.setup = {.name = name,
                           .injected = false,
                           .revision = revision_,
                           .image = RunningImage(),
                           .created = now_}};
}

}  // namespace cachewarm::sim
