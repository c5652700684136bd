// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/snapshot_builder.h"

#include <algorithm>
#include <stdexcept>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::fakes {

using codec::Json;

namespace {

Json Condition(const char* type, bool holds, int since) {
  return {{"type", type},
          {"status", holds ? "True" : "False"},
          {"lastTransitionTime", FormatTime(At(since))}};
}

Json ContainerState(const PodSetup& setup) {
  if (setup.exit_code) {
    Json ended = {{"exitCode", *setup.exit_code}, {"message", setup.words}};
    if (setup.started) {
      ended["startedAt"] = FormatTime(At(*setup.started));
    }
    if (setup.ended) {
      ended["finishedAt"] = FormatTime(At(*setup.ended));
    }
    return {{"terminated", ended}};
  }
  if (setup.started) {
    return {{"running", {{"startedAt", FormatTime(At(*setup.started))}}}};
  }
  return {{"waiting", {{"reason", "ContainerCreating"}, {"message", setup.words}}}};
}

Json PodStatus(const PodSetup& setup) {
  const bool done = setup.exit_code.has_value();
  const char* word = !done ? (setup.started ? "Running" : "Pending")
                           : (*setup.exit_code == 0 ? "Succeeded" : "Failed");
  const bool ready = setup.ready && !done;
  return {{"phase", word},
          {"conditions",
           Json::array({Condition("Ready", ready && setup.job.empty(), setup.ready.value_or(0)),
                        Condition("ContainersReady", ready, setup.ready.value_or(0))})},
          {"containerStatuses", Json::array({{{"name", "server"},
                                              {"ready", ready},
                                              {"restartCount", setup.restarts},
                                              {"state", ContainerState(setup)}}})}};
}

}  // namespace

WallTime At(int seconds) {
  const std::chrono::sys_days day = std::chrono::year(2026) / std::chrono::January / 1;
  return WallTime(day) + std::chrono::seconds(seconds);
}

SnapshotBuilder OneNode() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  return builder;
}

Digest DigestNamed(const std::string& digit) {
  return Digest::FromHex(std::string(64, digit.at(0)));
}

Json PodObject(const plan::Snapshot& in, const PodSetup& setup) {
  Json labels = {{"app", "llama"}, {"pod-template-hash", setup.revision}};
  labels.update(Json(setup.labels));
  Json annotations = setup.annotations;
  if (!setup.job.empty()) {
    labels = {{std::string(api::kBuilderWarmupLabel), in.warmup.uid},
              {"batch.kubernetes.io/job-name", setup.job}};
    if (setup.job.ends_with("-proof")) {
      labels[std::string(api::kBuilderProofLabel)] = "true";
    }
  } else if (setup.injected) {
    annotations[std::string(api::kWarmupAnnotation)] = in.warmup.name;
  }
  Json resources = Json::object();
  if (setup.gpus > 0) {
    resources["limits"] = {{"nvidia.com/gpu", setup.gpus}};
  }
  Json container = {{"name", "server"}, {"image", setup.image}, {"resources", resources}};
  if (setup.probe) {
    container["readinessProbe"] = Json::object();
  }
  Json pod = {{"metadata",
               {{"namespace", in.warmup.ns},
                {"name", setup.name},
                {"uid", "uid-" + setup.name},
                {"creationTimestamp", FormatTime(At(setup.created))},
                {"labels", labels},
                {"annotations", annotations}}},
              {"spec", {{"containers", Json::array({container})}}},
              {"status", PodStatus(setup)}};
  if (setup.deleting) {
    pod["metadata"]["deletionTimestamp"] = FormatTime(in.now);
  }
  if (!setup.node.empty()) {
    pod["spec"]["nodeName"] = setup.node;
  }
  if (!setup.restart_policy.empty()) {
    pod["spec"]["restartPolicy"] = setup.restart_policy;
  }
  if (setup.held) {
    pod["spec"]["schedulingGates"] = Json::array({{{"name", std::string(api::kSchedulingGate)}}});
  }
  for (const std::string& gate : setup.other_gates) {
    pod["spec"]["schedulingGates"].push_back({{"name", gate}});
  }
  if (setup.injected) {
    const std::string path =
        in.settings.root + "/" +
        api::CachePath(in.warmup.ns, in.warmup.name, in.warmup.uid, setup.run_as);
    pod["spec"]["volumes"] =
        Json::array({{{"name", std::string(api::kVolume)}, {"hostPath", {{"path", path}}}}});
  }
  return pod;
}

SnapshotBuilder::SnapshotBuilder() {
  in_.now = At(100);
  in_.warmup.ns = "models";
  in_.warmup.name = "llama";
  in_.warmup.uid = "7d0f";
  in_.warmup.resource_version = "1";
  in_.warmup.generation = 1;
  in_.warmup.spec.gate.mode = api::GateMode::kHold;
  in_.warmup.spec.workload_ref =
      api::WorkloadRef{.api_version = "apps/v1", .kind = "Deployment", .name = "llama"};
  template_ = std::make_shared<Json>(
      Json{{"metadata", {{"labels", {{"app", "llama"}}}}},
           {"spec",
            {{"containers", Json::array({{{"name", "server"},
                                          {"image", "server:1"},
                                          {"readinessProbe", Json::object()}}})}}}});
  in_.workload = {.found = true,
                  .name = "llama",
                  .uid = "d-1",
                  .selector = {{"app", "llama"}},
                  .replicas = 3,
                  .pod_template = template_};
}

SnapshotBuilder& SnapshotBuilder::Now(int seconds) {
  in_.now = At(seconds);
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Node(const NodeSetup& setup) {
  auto node = std::make_shared<api::Node>();
  node->meta.name = setup.name;
  node->meta.uid = "uid-" + setup.name;
  std::map<std::string, std::string> labels = setup.labels;
  labels["kubernetes.io/hostname"] = setup.name;
  node->meta.labels = labels;
  node->ready = true;
  node->allocatable = {{"pods", 110}};
  plan::Resources free = {{"pods", setup.pods}};
  if (setup.gpus > 0) {
    node->allocatable["nvidia.com/gpu"] = setup.gpus;
    free["nvidia.com/gpu"] = setup.gpus;
  }
  auto cache = std::make_shared<api::NodeCache>();
  cache->name = setup.name;
  cache->node_uid = node->meta.uid;
  if (setup.has_facts) {
    const bool has_gpu = setup.gpus > 0 && setup.gpu_type == "cpu";
    cache->status.node.gpu_type = has_gpu ? "nvidia/l4/sm_89" : setup.gpu_type;
    cache->status.node.cpu_class = setup.cpu_class;
    cache->status.node.root = {.path = "/var/lib/cachewarm", .writable = true, .executable = true};
  }
  if (setup.prepared) {
    cache->status.warmups.push_back({.uid = in_.warmup.uid, .prepared = {"image"}});
  }
  nodes_[setup.name] = node;
  caches_[setup.name] = cache;
  in_.nodes.push_back({.node = node, .cache = cache, .agent_ready = setup.agent, .free = free});
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Pod(const PodSetup& setup) {
  auto pod = api::DecodePod(std::make_shared<const Json>(PodObject(in_, setup)));
  if (!pod.ok()) {
    throw std::logic_error(pod.status().ToString());
  }
  std::erase_if(in_.pods, [&](const auto& each) { return each->meta.name == setup.name; });
  in_.pods.push_back(std::make_shared<const api::Pod>(*std::move(pod)));
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Bundle(const BundleSetup& setup) {
  const api::NodeStatus& facts = cache(setup.node).status.node;
  const api::BundleStatus bundle{.key = Key(setup.node, setup.image),
                                 .gpu_type = facts.gpu_type,
                                 .cpu_class = facts.cpu_class,
                                 .image = setup.image,
                                 .digest = DigestNamed(setup.digest),
                                 .bytes = 1000,
                                 .files = 10,
                                 .native = setup.native,
                                 .compile_seconds = setup.compile_seconds,
                                 .published_time = At(setup.published)};
  status().bundles.push_back(bundle);
  for (const std::string& name : setup.active) {
    reported(name).bundles.push_back({.digest = bundle.digest, .state = api::BundleState::kActive});
  }
  return *this;
}

SnapshotBuilder& SnapshotBuilder::DryRunAnswered(plan::DryRunResult unmodified,
                                                 plan::DryRunResult injected,
                                                 const std::string& message) {
  in_.dry_run = {};
  const plan::Plan first = Decide();
  if (!first.dry_run) {
    throw std::logic_error("the plan requests no dry run");
  }
  in_.dry_run = {.fingerprint = first.dry_run->fingerprint,
                 .time = in_.now,
                 .unmodified = unmodified,
                 .injected = injected,
                 .message = message};
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Accepted() {
  DryRunAnswered(plan::DryRunResult::kAllowed, plan::DryRunResult::kAllowed);
  const plan::Plan first = Decide();
  const api::Condition* ready = Condition(first, "Ready");
  if (!first.status.injection) {
    throw std::logic_error("not accepted: " + (ready == nullptr ? "" : ready->message));
  }
  status().injection = first.status.injection;
  status().conditions = first.status.conditions;
  status().starts.counting_started_time = first.status.starts.counting_started_time;
  warmup().labels[std::string(api::kInjectLabel)] = "true";
  return *this;
}

api::Node& SnapshotBuilder::node(const std::string& name) {
  return *nodes_.at(name);
}

api::NodeCache& SnapshotBuilder::cache(const std::string& name) {
  return *caches_.at(name);
}

plan::NodeView& SnapshotBuilder::view(const std::string& name) {
  for (plan::NodeView& view : in_.nodes) {
    if (view.node->meta.name == name) {
      return view;
    }
  }
  throw std::logic_error("no node " + name);
}

api::NodeWarmup& SnapshotBuilder::reported(const std::string& name) {
  auto& warmups = cache(name).status.warmups;
  if (warmups.empty()) {
    warmups.push_back({.uid = in_.warmup.uid});
  }
  return warmups.front();
}

std::string SnapshotBuilder::Key(const std::string& name, const std::string& image) {
  const api::NodeStatus& facts = cache(name).status.node;
  int gpus = 0;
  const Json& container = (*template_)["spec"]["containers"][0];
  if (container.contains("resources")) {
    gpus = container["resources"]["limits"].value("nvidia.com/gpu", 0);
  }
  return fingerprint::KeyOf({.gpu_type = facts.gpu_type,
                             .cpu_class = facts.cpu_class,
                             .image = image,
                             .devices = gpus,
                             .container = "server"})
      .value();
}

void SnapshotBuilder::Apply(const plan::Plan& plan) {
  status() = plan.status;
  for (const plan::NodeEntries& wants : plan.nodes) {
    cache(wants.node).spec = wants.spec;
  }
}

plan::Plan SnapshotBuilder::Decide() const {
  return plan::Decide(in_);
}

const api::Condition* Condition(const plan::Plan& plan, const std::string& type) {
  return api::FindCondition(plan.status.conditions, type);
}

std::string ReasonOf(const plan::Plan& plan, const std::string& type) {
  const api::Condition* found = Condition(plan, type);
  return found == nullptr ? "" : found->reason;
}

const plan::NodeEntries* EntriesOf(const plan::Plan& plan, const std::string& node) {
  for (const plan::NodeEntries& wants : plan.nodes) {
    if (wants.node == node) {
      return &wants;
    }
  }
  return nullptr;
}

const plan::GateRelease* ReleaseOf(const plan::Plan& plan, const std::string& pod) {
  for (const plan::GateRelease& release : plan.releases) {
    if (release.pod->meta.name == pod) {
      return &release;
    }
  }
  return nullptr;
}

const plan::PodAnnotation* AnnotationOf(const plan::Plan& plan, const std::string& pod,
                                        const std::string& key) {
  for (const plan::PodAnnotation& annotation : plan.annotations) {
    if (annotation.pod == pod && annotation.key == key) {
      return &annotation;
    }
  }
  return nullptr;
}

bool HasEvent(const plan::Plan& plan, const std::string& reason) {
  return std::any_of(plan.events.begin(), plan.events.end(),
                     [&](const plan::EventRequest& event) { return event.reason == reason; });
}

}  // namespace cachewarm::fakes
