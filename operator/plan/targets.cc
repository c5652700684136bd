// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fmt/format.h"
#include "lib/fingerprint/cpu_class.h"
#include "lib/fingerprint/gpu_type.h"
#include "lib/fingerprint/key.h"
#include "operator/plan/decisions.h"
#include "operator/plan/distribution/node_entries.h"
#include "operator/plan/nodes/offer.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kLiveImagesMax = 8;

// Returns the NodeCache of the node; null if there is none, or only that of a deleted node of the
// same name, which garbage collection has not removed yet.
const api::NodeCache* CacheOf(const NodeView& view) {
  const api::NodeCache* cache = view.cache.get();
  const bool stale =
      cache != nullptr && !cache->node_uid.empty() && cache->node_uid != view.node->meta.uid;
  return stale ? nullptr : cache;
}

bool IsPossible(const TemplateView& pod_template, const api::Node& node) {
  const PodShape& shape = pod_template.shape;
  return pod_template.pod_template != nullptr && node.os == "linux" && Selects(shape, node) &&
         Tolerates(shape, node, Taints::kPersistent) && Covers(node.allocatable, shape.requests);
}

// True if `gpu_types` is empty or selects `type`: the entry "nvidia/h100-80gb-hbm3" also selects
// every type that begins with "nvidia/h100-80gb-hbm3/".
bool IsListed(const std::vector<std::string>& gpu_types, const std::string& type) {
  return gpu_types.empty() ||
         std::any_of(gpu_types.begin(), gpu_types.end(), [&](const std::string& each) {
           return type == each || type.starts_with(each + "/");
         });
}

std::string ProblemOf(const std::string& uid, const NodeState& node) {
  if (IsFull(uid, node)) {
    return fmt::format(
        "{} other CacheWarmups use this node, the maximum for one node: delete unneeded "
        "CacheWarmups, or restrict them with spec.nodeSelector or spec.gpuTypes",
        node.view->warmups_listed);
  }
  if (node.reported != nullptr && !node.reported->message.empty()) {
    return node.reported->message;
  }
  const api::RootStatus* root = node.cache == nullptr ? nullptr : &node.cache->status.node.root;
  const bool known = root != nullptr && !node.cache->status.node.cpu_class.empty();
  return known && (!root->writable || !root->executable) ? root->message : std::string();
}

NodeState ReadNode(const Snapshot& in, const TemplateView& pod_template, const NodeView& view) {
  NodeState out{.view = &view, .cache = CacheOf(view), .hostname = HostnameOf(*view.node)};
  out.ready = view.node->ready;
  out.possible = IsPossible(pod_template, *view.node);
  if (out.cache != nullptr) {
    for (const api::NodeWarmup& warmup : out.cache->status.warmups) {
      if (warmup.uid == in.warmup.uid) {
        out.reported = &warmup;
      }
    }
  }
  if (out.reported != nullptr) {
    const auto& prepared = out.reported->prepared;
    out.prepared =
        std::find(prepared.begin(), prepared.end(), pod_template.run_as) != prepared.end();
  }
  if (!out.prepared) {
    out.problem = ProblemOf(in.warmup.uid, out);
  }
  return out;
}

bool HasEntries(const NodeState& node, const std::string& uid) {
  if (node.cache == nullptr) {
    return false;
  }
  const api::NodeCacheSpec& spec = node.cache->spec;
  const auto has_uid = [&](const auto& entry) { return entry.warmup_uid == uid; };
  return std::any_of(spec.warmups.begin(), spec.warmups.end(),
                     [&](const api::WantedWarmup& entry) { return entry.uid == uid; }) ||
         std::any_of(spec.captures.begin(), spec.captures.end(), has_uid) ||
         std::any_of(spec.starts.begin(), spec.starts.end(), has_uid);
}

// Reads the nodes that matter to the warmup, and sets PodView::node of the pods bound to them.
void ReadNodes(const Snapshot& in, const TemplateView& pod_template, ClusterView& out) {
  std::map<std::string_view, std::vector<PodView*>> bound;
  for (PodView& pod : out.pods) {
    if (!pod.pod->node.empty()) {
      bound[pod.pod->node].push_back(&pod);
    }
  }
  out.nodes.reserve(in.nodes.size());
  for (const NodeView& view : in.nodes) {
    NodeState node = ReadNode(in, pod_template, view);
    const auto here = bound.find(view.node->meta.name);
    if (here != bound.end()) {
      for (PodView* pod : here->second) {
        pod->node = static_cast<int>(out.nodes.size());
        node.hosts = node.hosts || (pod->injected && !pod->finished);
      }
    }
    if (node.possible || here != bound.end() || HasEntries(node, in.warmup.uid)) {
      out.nodes.push_back(std::move(node));
    }
  }
}

void GroupNodes(const api::WarmupSpec& spec, ClusterView& out) {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> groups;
  for (size_t i = 0; i < out.nodes.size(); ++i) {
    NodeState& node = out.nodes[i];
    if (node.cache == nullptr || !(node.possible || node.hosts)) {
      continue;
    }
    const api::NodeStatus& facts = node.cache->status.node;
    if (!facts.gpu_type.empty() || IsGpuUnknown(facts)) {
      node.hidden_device =
          HiddenDevice(*node.view->node, node.cache->spec.node.published, facts.gpu_type);
    }
    // Fail closed: a node with an unknown GPU type or CPU class gets no bundle.
    if (!node.hidden_device.empty() || !fingerprint::IsGpuType(facts.gpu_type) ||
        !fingerprint::IsCpuClass(facts.cpu_class)) {
      continue;
    }
    node.fits = api::HasLabels(node.view->node->meta.labels, spec.node_selector) &&
                IsListed(spec.gpu_types, facts.gpu_type);
    if (node.fits) {
      groups[{facts.gpu_type, facts.cpu_class}].push_back(i);
    }
  }
  for (auto& [names, nodes] : groups) {
    for (const size_t node : nodes) {
      out.nodes[node].target = static_cast<int>(out.targets.size());
    }
    out.targets.push_back(
        {.gpu_type = names.first, .cpu_class = names.second, .nodes = std::move(nodes)});
  }
}

void FindKeys(const PodFactors& current, ClusterView& out) {
  std::vector<PodFactors> live;
  if (!current.image.empty()) {
    live.push_back(current);
  }
  for (const PodView& pod : out.pods) {
    const bool counts = pod.injected && !pod.finished && !pod.factors.image.empty();
    if (counts && live.size() < kLiveImagesMax &&
        std::find(live.begin(), live.end(), pod.factors) == live.end()) {
      live.push_back(pod.factors);
    }
  }
  for (size_t target = 0; target < out.targets.size(); ++target) {
    for (const PodFactors& factors : live) {
      LiveKey key{.factors = {.gpu_type = out.targets[target].gpu_type,
                              .cpu_class = out.targets[target].cpu_class,
                              .image = factors.image,
                              .devices = factors.devices,
                              .container = factors.container},
                  .target = target,
                  .current = factors == current};
      if (auto text = fingerprint::KeyOf(key.factors); text.ok()) {
        key.key = *std::move(text);
        out.keys.push_back(std::move(key));
      }
    }
  }
}

}  // namespace

ClusterView FindTargets(const Snapshot& in, const TemplateView& pod_template,
                        std::vector<PodView> pods) {
  ClusterView out{.pods = std::move(pods)};
  ReadNodes(in, pod_template, out);
  GroupNodes(in.warmup.spec, out);
  FindKeys(pod_template.factors, out);
  return out;
}

Observed Observe(const Snapshot& snapshot) {
  Observed out{.workload = ReadWorkload(snapshot)};
  const TemplateView& pod_template = out.workload.pod_template;
  out.hold = DecideHoldPolicy(snapshot, pod_template);
  out.cluster = FindTargets(snapshot, pod_template, ReadPods(snapshot, pod_template));
  return out;
}

}  // namespace cachewarm::plan
