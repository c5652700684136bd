// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "operator/plan/snapshot.h"

// Where a pod may run, as far as we must know it: node selector, required node affinity,
// tolerations, requests (kube-scheduler's NodeAffinity, TaintToleration and NodeResourcesFit).
// Pod (anti)affinity and spread are left to the scheduler: what we conclude is only ever a hint.
namespace cachewarm::plan {

struct Requirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
};

struct SelectorTerm {
  std::vector<Requirement> labels;  // ANDed
  std::vector<Requirement> fields;  // metadata.name only
};

struct Toleration {
  std::string key;  // empty with Exists: every taint
  std::string op;   // Equal, Exists
  std::string value;
  std::string effect;  // empty: every effect
};

struct PodShape {
  std::map<std::string, std::string> node_selector;
  bool has_required_affinity = false;
  std::vector<SelectorTerm> terms;  // ORed
  std::vector<Toleration> tolerations;
  Resources requests;  // what the scheduler counts, "pods": 1 included
};

PodShape ShapeOf(const codec::Json& pod_spec);

// Node selector and required affinity allow the node.
bool Selects(const PodShape& shape, const api::Node& node);

// Which taints of a node count.
enum class Taints {
  kPersistent,     // those that do not come and go by themselves (node.kubernetes.io/…, startup
                   // taints)
  kExceptStartup,  // all, and cordons, but our own startup taints, which go when the node is warm
  kAll,            // and cordons
};

// NoSchedule and NoExecute taints that count are tolerated.
bool Tolerates(const PodShape& shape, const api::Node& node, Taints taints);

// Every request is at most what `have` holds; what `have` does not name counts as unlimited for
// cpu, memory and pods, and as none for devices.
bool Covers(const Resources& have, const Resources& requests);

// One of our startup taints still keeps pods off the node.
bool HasStartupTaint(const api::Node& node);

// ... and pods of this shape, which do not tolerate it.
bool HasStartupTaintFor(const PodShape& shape, const api::Node& node);
// Each of them would; pods that tolerate everything do not wait for one to go.
bool RepelledByStartupTaints(const PodShape& shape);

// kubernetes.io/hostname of the node, else its name. Of the node, not a copy.
std::string_view HostnameOf(const api::Node& node);

// True for resources that kernels are compiled for: nvidia.com/gpu, nvidia.com/mig-…, amd.com/gpu,
// gpu.intel.com/…, TPUs, Neuron, Gaudi; not for network devices.
bool IsAccelerator(std::string_view resource);

}  // namespace cachewarm::plan
