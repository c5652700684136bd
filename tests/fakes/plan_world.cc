// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/plan_world.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/digest.h"

namespace cachewarm::fakes {

namespace {

constexpr int kSettle = 2;
constexpr int kFetch = 2;

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

PlanWorld::PlanWorld(const WorldSetup& setup) : setup_(setup), random_(setup.seed) {
  replicas_ = setup.replicas;
  builder_.Now(now_);
  builder_.warmup().spec.compile.settle_seconds = 1;
}

void PlanWorld::AddNode(const NodeSetup& node) {
  NodeSetup fresh = node;
  fresh.prepared = false;
  nodes_[node.name] = fresh;
  builder_.Node(fresh);
}

void PlanWorld::RemoveNode(const std::string& name) {
  std::erase_if(builder_.in().nodes,
                [&](const plan::NodeView& view) { return view.node->meta.name == name; });
  nodes_.erase(name);
  std::erase_if(pods_, [&](const auto& pod) { return pod.second.setup.node == name; });
}

void PlanWorld::Rollout(const std::string& revision, const std::string& image) {
  revision_ = revision;
  image_ = image;
  builder_.pod_template()["spec"]["containers"][0]["image"] = image;
  builder_.pod_template()["spec"]["containers"][0]["args"] = {revision};
}

void PlanWorld::Kill(const std::string& pod) {
  pods_.erase(pod);
}

void PlanWorld::KillOne() {
  if (!pods_.empty()) {
    pods_.erase(std::next(pods_.begin(), static_cast<ptrdiff_t>(random_() % pods_.size())));
  }
}

size_t PlanWorld::pods_ready() const {
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(),
                                           [](const auto& pod) { return pod.second.setup.ready; }));
}

size_t PlanWorld::pods_held() const {
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(),
                                           [](const auto& pod) { return pod.second.setup.held; }));
}

int PlanWorld::elections(const std::string& key) const {
  const auto found = elected_.find(key);
  return found == elected_.end() ? 0 : static_cast<int>(found->second.size());
}

int PlanWorld::hits_after(int second) const {
  return static_cast<int>(std::count_if(results_.begin(), results_.end(), [&](const auto& each) {
    return each.first >= second && each.second == api::StartResult::kHit;
  }));
}

int PlanWorld::misses_after(int second) const {
  return static_cast<int>(std::count_if(results_.begin(), results_.end(), [&](const auto& each) {
    return each.first >= second && each.second != api::StartResult::kHit &&
           each.second != api::StartResult::kBuilder;
  }));
}

int PlanWorld::FreeSlots(const std::string& node) const {
  const auto used = std::count_if(pods_.begin(), pods_.end(),
                                  [&](const auto& pod) { return pod.second.setup.node == node; });
  return nodes_.at(node).pods - static_cast<int>(used);
}

bool PlanWorld::Dies() {
  return std::uniform_real_distribution<>(0, 1)(random_) < setup_.operator_dies;
}

void PlanWorld::Violate(const std::string& what) {
  violations_.push_back("second " + std::to_string(now_) + ": " + what);
}

// One pod too many of the old revision goes as soon as a new one is ready: maxSurge 1.
void PlanWorld::RunDeployment() {
  const api::WarmupStatus& status = builder_.status();
  const bool injects = status.injection && builder_.warmup().labels.contains("cachewarm.io/inject");
  int current = 0;
  int old = 0;
  bool starting = false;
  for (const auto& [name, pod] : pods_) {
    if (!pod.setup.job.empty()) {
      continue;
    }
    (pod.setup.revision == revision_ ? current : old) += 1;
    starting = starting || (pod.setup.revision == revision_ && !pod.setup.ready);
  }
  const bool rolls = old > 0;
  if (current < replicas_ && !(rolls && starting)) {
    SimPod pod{.setup = {.name = "p" + std::to_string(1000 + next_pod_++),
                         .injected = injects,
                         .revision = revision_,
                         .image = image_,
                         .created = now_}};
    pod.setup.held =
        injects && status.injection->gate && !Contains(status.injection->warm_revisions, revision_);
    pod.gated_at = now_;
    pods_[pod.setup.name] = pod;
    return;
  }
  for (auto pod = pods_.begin(); pod != pods_.end(); ++pod) {
    const bool surplus_old = pod->second.setup.revision != revision_ && !starting;
    const bool surplus = current + old > replicas_ && (old > 0 ? surplus_old : true);
    if (pod->second.setup.job.empty() && surplus) {
      pods_.erase(pod);
      return;
    }
  }
}

void PlanWorld::Schedule() {
  for (auto& entry : pods_) {
    SimPod& pod = entry.second;
    if (pod.setup.held || !pod.setup.node.empty()) {
      continue;
    }
    std::vector<std::string> open;
    for (const auto& [node, setup] : nodes_) {
      const bool wrong_class = !pod.setup.job.empty() && !Contains(pod.preferred, node);
      // The startup taint keeps pods off a node until its agent has prepared it.
      const bool prepared = !builder_.reported(node).prepared.empty();
      if (FreeSlots(node) > 0 && prepared && !Contains(pod.excluded, node) && !wrong_class) {
        open.push_back(node);
      }
    }
    std::vector<std::string> liked;
    std::copy_if(open.begin(), open.end(), std::back_inserter(liked),
                 [&](const std::string& node) { return Contains(pod.preferred, node); });
    // A preference is only that: sometimes the scheduler has a better reason.
    const double chance = std::uniform_real_distribution<>(0, 1)(random_);
    const bool obeys = !pod.setup.job.empty() || chance < setup_.preference_kept;
    const auto& from = liked.empty() || !obeys ? open : liked;
    if (!from.empty()) {
      pod.setup.node = from[random_() % from.size()];
    }
  }
}

void PlanWorld::RunKubelets() {
  for (auto& [name, pod] : pods_) {
    if (pod.setup.node.empty() || pod.setup.ready) {
      continue;
    }
    if (!pod.setup.started) {
      pod.setup.started = now_;
      const std::string key = builder_.Key(pod.setup.node, pod.setup.image);
      for (const api::BundleStatus& bundle : builder_.status().bundles) {
        for (const auto& have : builder_.reported(pod.setup.node).bundles) {
          pod.warm = pod.warm || (bundle.key == key && have.digest == bundle.digest &&
                                  have.state == api::BundleState::kActive);
        }
      }
    } else if (now_ >=
               *pod.setup.started + (pod.warm ? setup_.warm_seconds : setup_.cold_seconds)) {
      pod.setup.ready = now_;
      if (pod.setup.injected) {
        ended_.insert("uid-" + name);
      }
    }
  }
}

void PlanWorld::RunAgents() {
  for (const auto& [name, setup] : nodes_) {
    if (setup.agent) {
      RunAgent(name);
    }
  }
}

void PlanWorld::RunAgent(const std::string& node) {
  api::NodeCache& cache = builder_.cache(node);
  api::NodeWarmup& reported = builder_.reported(node);
  cache.status.captures.clear();
  cache.status.starts.clear();
  for (const api::WantedWarmup& wanted : cache.spec.warmups) {
    reported.prepared = wanted.run_as;
    std::vector<api::NodeBundle> bundles;
    for (const api::WantedBundle& bundle : wanted.bundles) {
      const std::string place = node + "/" + bundle.digest.ToString();
      const auto known = class_of_digest_.find(bundle.digest.ToString());
      if (known == class_of_digest_.end() || known->second != cache.status.node.cpu_class) {
        Violate("node " + node + " was given a bundle of another CPU class");
      }
      if (!fetched_at_.contains(place) && !store_down_) {
        fetched_at_[place] = now_ + kFetch;
      }
      const auto at = fetched_at_.find(place);
      const bool active = at != fetched_at_.end() && now_ >= at->second;
      bundles.push_back({.digest = bundle.digest,
                         .state = active ? api::BundleState::kActive
                                         : (store_down_ ? api::BundleState::kFailed
                                                        : api::BundleState::kFetching),
                         .reason = active || !store_down_ ? "" : "FetchFailed"});
    }
    reported.bundles = bundles;
  }
  for (const api::CaptureRequest& request : cache.spec.captures) {
    api::CaptureStatus answer{.id = request.id};
    if (request.ready_at != WallTime{} && !store_down_) {
      const int at = pushed_at_.emplace(request.id, now_ + kSettle).first->second;
      if (now_ >= at) {
        answer.state = api::CaptureState::kPushed;
        answer.digest = DigestOf(request.id);
        answer.bytes = 100;
        answer.files = 1;
        answer.compile_seconds = setup_.cold_seconds - setup_.warm_seconds;
        class_of_digest_[answer.digest.ToString()] = request.factors.cpu_class;
      }
    }
    cache.status.captures.push_back(answer);
  }
  for (const api::StartWindow& window : cache.spec.starts) {
    const auto pod = std::find_if(pods_.begin(), pods_.end(), [&](const auto& each) {
      return "uid-" + each.first == window.pod_uid;
    });
    if (window.ready_at != WallTime{} && pod != pods_.end()) {
      cache.status.starts.push_back(
          {.pod_uid = window.pod_uid,
           .result = pod->second.warm ? api::StartResult::kHit : api::StartResult::kMiss,
           .compile_seconds =
               pod->second.warm ? 0.0 : double(setup_.cold_seconds - setup_.warm_seconds)});
    }
  }
}

void PlanWorld::Publish() {
  builder_.Now(now_);
  builder_.in().workload.replicas = replicas_;
  builder_.in().pods.clear();
  for (const auto& [name, pod] : pods_) {
    builder_.Pod(pod.setup);
  }
  for (plan::NodeView& view : builder_.in().nodes) {
    view.free["pods"] = FreeSlots(view.node->meta.name);
  }
}

bool PlanWorld::Apply(const plan::Plan& plan) {
  if (Dies()) {
    return false;
  }
  builder_.status() = plan.status;
  for (const api::StartSample& sample : plan.starts_counted) {
    results_.emplace_back(now_, sample.result);
  }
  for (const api::BuilderStatus& entry : plan.status.builders) {
    if (!entry.node.empty()) {
      elected_[entry.key].insert(entry.pod_uid);
    }
  }
  if (Dies()) {
    return false;
  }
  if (plan.set_inject_label) {
    if (*plan.set_inject_label) {
      builder_.warmup().labels["cachewarm.io/inject"] = "true";
    } else {
      builder_.warmup().labels.erase("cachewarm.io/inject");
    }
  }
  for (const plan::NodeWants& wants : plan.nodes) {
    if (Dies()) {
      return false;
    }
    builder_.cache(wants.node).spec = wants.spec;
  }
  for (const plan::JobWish& job : plan.jobs_to_create) {
    auto& jobs = builder_.in().jobs;
    if (std::any_of(jobs.begin(), jobs.end(), [&](const auto& j) { return j.name == job.name; })) {
      continue;
    }
    jobs.push_back({.name = job.name, .uid = "j-" + job.name, .created = At(now_)});
    SimPod pod{
        .setup = {.name = job.name + "-pod", .image = image_, .created = now_, .job = job.name}};
    const auto& terms =
        (*job.object)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                     ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    pod.preferred = terms[0]["matchExpressions"][0]["values"].get<std::vector<std::string>>();
    pods_[pod.setup.name] = pod;
  }
  for (const std::string& name : plan.jobs_to_delete) {
    std::erase_if(builder_.in().jobs, [&](const auto& job) { return job.name == name; });
    pods_.erase(name + "-pod");
  }
  for (const plan::PodAnnotation& note : plan.annotations) {
    const auto pod = pods_.find(note.pod);
    if (pod != pods_.end() && !Dies()) {
      pod->second.setup.annotations[note.key] = note.value;
    }
  }
  for (const plan::GateRelease& release : plan.releases) {
    const auto pod = pods_.find(release.pod->meta.name);
    if (Dies() || pod == pods_.end()) {
      return false;
    }
    pod->second.setup.held = false;
    pod->second.preferred = release.preferred;
    pod->second.excluded = release.excluded;
    pod->second.setup.annotations["cachewarm.io/held-seconds"] =
        std::to_string(now_ - pod->second.gated_at);
  }
  return true;
}

void PlanWorld::RunOperator() {
  if (operator_down_) {
    quiet_ = 0;
    return;
  }
  const plan::Plan plan = builder_.Decide();
  if (plan.rehearsal) {
    builder_.in().rehearsal = {.fingerprint = plan.rehearsal->fingerprint,
                               .time = builder_.in().now,
                               .as_is = plan::Answer::kAllowed,
                               .injected = plan::Answer::kAllowed};
  }
  const bool wants = plan.status_changed || plan.set_inject_label || !plan.nodes.empty() ||
                     !plan.jobs_to_create.empty() || !plan.jobs_to_delete.empty() ||
                     !plan.annotations.empty() || !plan.releases.empty() || plan.rehearsal;
  quiet_ = wants ? 0 : quiet_ + 1;
  Apply(plan);
}

void PlanWorld::Check() {
  for (const auto& [name, pod] : pods_) {
    const int most = builder_.warmup().spec.gate.max_hold_seconds;
    if (pod.setup.held && !operator_down_ && setup_.operator_dies == 0 &&
        now_ > pod.setup.created + most) {
      Violate("pod " + name + " is held beyond its deadline");
    }
  }
  std::set<std::string> running;
  for (const api::BuilderStatus& entry : builder_.status().builders) {
    const bool runs =
        entry.state == api::BuilderState::kElected || entry.state == api::BuilderState::kCapturing;
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

void PlanWorld::Second() {
  ++now_;
  RunDeployment();
  Schedule();
  RunKubelets();
  Publish();
  RunAgents();
  RunOperator();
  Check();
}

void PlanWorld::Seconds(int count) {
  for (int i = 0; i < count; ++i) {
    Second();
  }
}

bool PlanWorld::Settle(int limit) {
  const int quiet_enough = 2 * setup_.cold_seconds;  // a compile is quiet too
  quiet_ = 0;
  for (int i = 0; i < limit && quiet_ < quiet_enough; ++i) {
    Second();
  }
  return quiet_ >= quiet_enough;
}

}  // namespace cachewarm::fakes
