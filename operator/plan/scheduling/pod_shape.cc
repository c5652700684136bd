// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/scheduling/pod_shape.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "lib/api/names.h"
#include "lib/api/startup_taint.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/model/resource_requests.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

constexpr std::string_view kTransientTaintPrefixes[] = {
    "node.kubernetes.io/", "cachewarm.io/", "startup-taint.cluster-autoscaler.kubernetes.io/",
    "readiness.k8s.io/", "karpenter.sh/unregistered"};

std::vector<Requirement> RequirementsOf(const Json& term, std::string_view member) {
  std::vector<Requirement> out;
  for (const Json& each : codec::ListAt(term, {member})) {
    Requirement requirement{.key = codec::TextAt(each, {"key"}),
                            .op = codec::TextAt(each, {"operator"})};
    for (const Json& value : codec::ListAt(each, {"values"})) {
      if (value.is_string()) {
        requirement.values.push_back(value.get<std::string>());
      }
    }
    out.push_back(std::move(requirement));
  }
  return out;
}

std::optional<int64_t> AsInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

bool Compares(const Requirement& requirement, std::string_view value) {
  const auto bound =
      requirement.values.size() == 1 ? AsInteger(requirement.values[0]) : std::nullopt;
  const auto have = AsInteger(value);
  if (!bound || !have) {
    return false;
  }
  return requirement.op == "Gt" ? *have > *bound : *have < *bound;
}

bool Meets(const Requirement& requirement, std::optional<std::string_view> value) {
  const auto& values = requirement.values;
  const bool listed = value && std::find(values.begin(), values.end(), *value) != values.end();
  if (requirement.op == "In") {
    return listed;
  }
  if (requirement.op == "NotIn") {
    return !listed;
  }
  if (requirement.op == "Exists") {
    return value.has_value();
  }
  if (requirement.op == "DoesNotExist") {
    return !value.has_value();
  }
  return value && Compares(requirement, *value);
}

bool Matches(const SelectorTerm& term, const api::Node& node) {
  if (term.labels.empty() && term.fields.empty()) {
    return false;  // the API's rule: an empty term matches nothing
  }
  const api::Labels& labels = node.meta.labels;
  const bool by_labels =
      std::all_of(term.labels.begin(), term.labels.end(), [&](const Requirement& each) {
        const auto found = labels.find(each.key);
        return Meets(each, found == labels.end() ? std::nullopt : std::optional(found->second));
      });
  return by_labels &&
         std::all_of(term.fields.begin(), term.fields.end(), [&](const Requirement& each) {
           return each.key == "metadata.name" && Meets(each, node.meta.name);
         });
}

bool IsTransient(const api::Taint& taint) {
  return std::any_of(std::begin(kTransientTaintPrefixes), std::end(kTransientTaintPrefixes),
                     [&](std::string_view prefix) { return taint.key.starts_with(prefix); });
}

bool Tolerated(const api::Toleration& toleration, const api::Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) {
    return false;
  }
  if (toleration.op == "Exists") {
    return toleration.key.empty() || toleration.key == taint.key;
  }
  return toleration.key == taint.key && toleration.value == taint.value;
}

bool IsCounted(const api::Taint& taint, Taints taints) {
  return taints == Taints::kAll || !IsTransient(taint);
}

bool Repels(const api::Taint& taint, const PodShape& shape) {
  return taint.effect != "PreferNoSchedule" &&
         std::none_of(shape.tolerations.begin(), shape.tolerations.end(),
                      [&](const api::Toleration& each) { return Tolerated(each, taint); });
}

}  // namespace

PodShape ShapeOf(const Json& pod_spec) {
  PodShape out;
  out.node_selector = codec::Texts(codec::At(pod_spec, {"nodeSelector"}));
  const Json* required = codec::At(
      pod_spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required != nullptr) {
    out.has_required_affinity = true;
    for (const Json& term : codec::ListAt(*required, {"nodeSelectorTerms"})) {
      out.terms.push_back({.labels = RequirementsOf(term, "matchExpressions"),
                           .fields = RequirementsOf(term, "matchFields")});
    }
  }
  for (const Json& each : codec::ListAt(pod_spec, {"tolerations"})) {
    out.tolerations.push_back({.key = codec::TextAt(each, {"key"}),
                               .op = codec::TextAt(each, {"operator"}),
                               .value = codec::TextAt(each, {"value"}),
                               .effect = codec::TextAt(each, {"effect"})});
  }
  out.requests = model::RequestsOf(pod_spec);
  return out;
}

bool Selects(const PodShape& shape, const api::Node& node) {
  if (!api::HasLabels(node.meta.labels, shape.node_selector)) {
    return false;
  }
  return !shape.has_required_affinity ||
         std::any_of(shape.terms.begin(), shape.terms.end(),
                     [&](const SelectorTerm& term) { return Matches(term, node); });
}

bool Tolerates(const PodShape& shape, const api::Node& node, Taints taints) {
  if (taints != Taints::kPersistent && node.unschedulable) {
    return false;
  }
  return std::none_of(node.taints.begin(), node.taints.end(), [&](const api::Taint& taint) {
    return IsCounted(taint, taints) && Repels(taint, shape);
  });
}

bool Covers(const Resources& have, const Resources& requests) {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    if (request.second <= 0) {
      return true;
    }
    const auto found = have.find(request.first);
    if (found == have.end()) {
      return request.first.find('/') == std::string::npos;
    }
    return found->second >= request.second;
  });
}

bool HasStartupTaint(const api::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(),
                     [](const api::Taint& taint) { return api::IsStartupTaint(taint.key); });
}

bool HasStartupTaintFor(const PodShape& shape, const api::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [&](const api::Taint& taint) {
    return api::IsStartupTaint(taint.key) && Repels(taint, shape);
  });
}

bool RepelledByStartupTaints(const PodShape& shape) {
  return std::all_of(std::begin(api::kWarmingTaints), std::end(api::kWarmingTaints),
                     [&](std::string_view key) {
                       return Repels({.key = std::string(key), .effect = "NoSchedule"}, shape);
                     });
}

std::string_view HostnameOf(const api::Node& node) {
  const auto found = node.meta.labels.find("kubernetes.io/hostname");
  return found == node.meta.labels.end() ? std::string_view(node.meta.name) : found->second;
}

}  // namespace cachewarm::plan
