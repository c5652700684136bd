// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "operator/plan/values.h"

// The parts of a pod that decide where it may run: node selector, required node affinity,
// tolerations, requests (kube-scheduler's NodeAffinity, TaintToleration and NodeResourcesFit).
// Ignores pod (anti)affinity and topology spread constraints, because the results are only hints to
// the scheduler.
namespace cachewarm::plan {

struct Requirement {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
};

struct SelectorTerm {
  std::vector<Requirement> labels;  // ANDed
  std::vector<Requirement> fields;  // the only valid key is metadata.name
};

struct PodShape {
  std::map<std::string, std::string> node_selector;
  bool has_required_affinity = false;
  std::vector<SelectorTerm> terms;  // ORed
  std::vector<api::Toleration> tolerations;
  Resources requests;  // resource requests as the scheduler counts them, with "pods": 1
};

PodShape ShapeOf(const codec::Json& pod_spec);

// True if node selector and required affinity allow the node.
bool Selects(const PodShape& shape, const api::Node& node);

// Selects the taints of a node that Tolerates() considers. A cordon (spec.unschedulable) counts as
// a taint unless kPersistent is selected.
enum class Taints {
  // All but transient taints (node.kubernetes.io/…, startup taints).
  kPersistent,
  // All taints.
  kAll,
};

// True if pods of this shape tolerate the considered NoSchedule and NoExecute taints.
bool Tolerates(const PodShape& shape, const api::Node& node, Taints taints);

// True if `have` covers every request. A resource that is missing from `have` counts as 0 if its
// name has a "/", as devices do, else as unlimited (cpu, memory, pods).
bool Covers(const Resources& have, const Resources& requests);

// True if the node has a cachewarm startup taint.
bool HasStartupTaint(const api::Node& node);

// True if the node has a cachewarm startup taint that pods of this shape do not tolerate.
bool HasStartupTaintFor(const PodShape& shape, const api::Node& node);
// True if every cachewarm startup taint would repel pods of this shape.
bool RepelledByStartupTaints(const PodShape& shape);

// Returns the node's label kubernetes.io/hostname; without that label, the node's name. The result
// points into `node`.
std::string_view HostnameOf(const api::Node& node);

}  // namespace cachewarm::plan
