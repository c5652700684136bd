// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "fmt/format.h"
#include "lib/fingerprint/cpu_class.h"
#include "lib/fingerprint/gpu_type.h"
#include "lib/fingerprint/key.h"
#include "operator/plan/decisions.h"
#include "operator/plan/fetching/entries.h"
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

bool IsPossible(const PlanContext& context, const api::Node& node) {
  const PodShape& shape = context.pod_template.shape;
  return context.pod_template.pod_template != nullptr && node.os == "linux" &&
         Selects(shape, node) && Tolerates(shape, node, Taints::kPersistent) &&
         Covers(node.allocatable, shape.requests);
}

// True if `gpu_types` is empty or selects `type`: the entry "nvidia/h100-80gb-hbm3" also selects
// every type that begins with "nvidia/h100-80gb-hbm3/".
bool IsListed(const std::vector<std::string>& gpu_types, const std::string& type) {
  return gpu_types.empty() ||
         std::any_of(gpu_types.begin(), gpu_types.end(), [&](const std::string& each) {
           return type == each || type.starts_with(each + "/");
         });
}

std::string ProblemOf(const PlanContext& context, const NodeState& node) {
  if (IsFull(context, node)) {
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

NodeState ReadNode(const PlanContext& context, const NodeView& view) {
  NodeState out{.view = &view, .cache = CacheOf(view), .hostname = HostnameOf(*view.node)};
  out.ready = view.node->ready;
  out.possible = IsPossible(context, *view.node);
  if (out.cache != nullptr) {
    for (const api::NodeWarmup& warmup : out.cache->status.warmups) {
      if (warmup.uid == context.uid()) {
        out.reported = &warmup;
      }
    }
  }
  if (out.reported != nullptr) {
    const auto& prepared = out.reported->prepared;
    out.prepared =
        std::find(prepared.begin(), prepared.end(), context.pod_template.run_as) != prepared.end();
  }
  if (!out.prepared) {
    out.problem = ProblemOf(context, out);
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

void ReadNodes(PlanContext& context) {
  std::map<std::string_view, std::vector<PodView*>> bound;
  for (PodView& pod : context.pods) {
    if (!pod.pod->node.empty()) {
      bound[pod.pod->node].push_back(&pod);
    }
  }
  context.nodes.reserve(context.in.nodes.size());
  for (const NodeView& view : context.in.nodes) {
    NodeState node = ReadNode(context, view);
    const auto here = bound.find(view.node->meta.name);
    if (here != bound.end()) {
      for (PodView* pod : here->second) {
        pod->node = static_cast<int>(context.nodes.size());
        node.hosts = node.hosts || (pod->injected && !pod->finished);
      }
    }
    if (node.possible || here != bound.end() || HasEntries(node, context.uid())) {
      context.nodes.push_back(std::move(node));
    }
  }
}

void GroupNodes(PlanContext& context) {
  const api::WarmupSpec& spec = context.in.warmup.spec;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> groups;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    NodeState& node = context.nodes[i];
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
      context.nodes[node].target = static_cast<int>(context.targets.size());
    }
    context.targets.push_back(
        {.gpu_type = names.first, .cpu_class = names.second, .nodes = std::move(nodes)});
  }
}

void FindKeys(PlanContext& context) {
  std::vector<PodFactors> live;
  if (!context.pod_template.factors.image.empty()) {
    live.push_back(context.pod_template.factors);
  }
  for (const PodView& pod : context.pods) {
    const bool counts = pod.injected && !pod.finished && !pod.factors.image.empty();
    if (counts && live.size() < kLiveImagesMax &&
        std::find(live.begin(), live.end(), pod.factors) == live.end()) {
      live.push_back(pod.factors);
    }
  }
  for (size_t target = 0; target < context.targets.size(); ++target) {
    for (const PodFactors& factors : live) {
      LiveKey key{.factors = {.gpu_type = context.targets[target].gpu_type,
                              .cpu_class = context.targets[target].cpu_class,
                              .image = factors.image,
                              .devices = factors.devices,
                              .container = factors.container},
                  .target = target,
                  .current = factors == context.pod_template.factors};
      if (auto text = fingerprint::KeyOf(key.factors); text.ok()) {
        key.key = *std::move(text);
        context.keys.push_back(std::move(key));
      }
    }
  }
}

}  // namespace

void FindTargets(PlanContext& context) {
  ReadNodes(context);
  GroupNodes(context);
  FindKeys(context);
}

}  // namespace cachewarm::plan
