// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/differences.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cachewarm::factors {
namespace {

std::string_view ValueIn(const StartFactors& factors, std::string_view name) {
  const auto found = factors.find(name);
  return found == factors.end() ? std::string_view() : std::string_view(found->second);
}

bool IsMark(std::string_view name) {
  return name == kSaltFactor || name == kRulesFactor || name == kNodeFactor || name == kCutFactor;
}

bool IsHashed(std::string_view value) {
  return value.starts_with(kHashed);
}

// True for a factor that a container can lack. The value of any other absent factor is unknown.
bool IsOfContainer(std::string_view name) {
  return name.starts_with("env/") || name.starts_with("args/") || name == "envFrom";
}

class Comparer {
 public:
  Comparer(const StartFactors& builder, const StartFactors& pod) : builder_(builder), pod_(pod) {
    comparison_.is_salt_changed = ValueIn(builder, kSaltFactor) != ValueIn(pod, kSaltFactor);
    // With other rules, either side may lack what the other has.
    const bool rules_differ = ValueIn(builder, kRulesFactor) != ValueIn(pod, kRulesFactor);
    is_builder_complete_ = !rules_differ && !builder.contains(kCutFactor);
    is_pod_complete_ = !rules_differ && !pod.contains(kCutFactor);
  }

  Comparison Compare() {
    for (const auto& [name, value] : builder_) {
      Compare(name, value, ValueIn(pod_, name));
    }
    for (const auto& [name, value] : pod_) {
      if (!builder_.contains(name)) {
        Compare(name, "", value);
      }
    }
    return std::move(comparison_);
  }

 private:
  void Compare(const std::string& name, std::string_view builder, std::string_view pod) {
    const bool is_unknown = (builder.empty() || pod.empty()) && !IsOfContainer(name);
    if (IsMark(name) || is_unknown ||
        (name == kImageIdFactor && !AreImageIdsComparable(builder, pod))) {
      return;
    }
    const bool is_per_pod = builder.starts_with(kPodPrefix) && pod.starts_with(kPodPrefix);
    const bool is_per_node = builder.starts_with(kNodePrefix) && pod.starts_with(kNodePrefix) &&
                             ValueIn(builder_, kNodeFactor) != ValueIn(pod_, kNodeFactor);
    if (is_per_pod || is_per_node) {
      Add(name, DifferenceKind::kPerPod, builder, pod);
    } else if (builder == pod) {
      return;
    } else if (builder.empty()) {
      if (is_builder_complete_) {
        Add(name, DifferenceKind::kOnlyPod, builder, pod);
      }
    } else if (pod.empty()) {
      if (is_pod_complete_) {
        Add(name, DifferenceKind::kOnlyBuilder, builder, pod);
      }
    } else if (!(comparison_.is_salt_changed && IsHashed(builder) && IsHashed(pod))) {
      Add(name, DifferenceKind::kChanged, builder, pod);
    }
  }

  // On two nodes, kubelet may report different IDs for one image, unless they are digests of a
  // registry.
  bool AreImageIdsComparable(std::string_view builder, std::string_view pod) const {
    const auto is_digest = [](std::string_view id) {
      return id.find("@sha256:") != std::string_view::npos;
    };
    return (is_digest(builder) && is_digest(pod)) ||
           ValueIn(builder_, kNodeFactor) == ValueIn(pod_, kNodeFactor);
  }

  void Add(const std::string& name, DifferenceKind kind, std::string_view builder,
           std::string_view pod) {
    const Knowledge knowledge = KnowledgeOf(name, kind == DifferenceKind::kPerPod);
    if (knowledge.relevance != Relevance::kNone) {
      comparison_.differences.push_back(
          {.name = name,
           .kind = kind,
           .builder = IsHashed(builder) ? std::string() : std::string(builder),
           .pod = IsHashed(pod) ? std::string() : std::string(pod),
           .knowledge = knowledge});
    }
  }

  const StartFactors& builder_;
  const StartFactors& pod_;
  bool is_builder_complete_ = true;
  bool is_pod_complete_ = true;
  Comparison comparison_;
};

}  // namespace

Comparison Differences(const StartFactors& builder, const StartFactors& pod, Usage usage) {
  Comparison comparison = Comparer(builder, pod).Compare();
  const auto rank = [usage](const Difference& each) {
    const bool is_first = usage == Usage::kUnread && each.knowledge.selects_directory;
    return std::tuple(!is_first, -static_cast<int>(each.knowledge.relevance),
                      each.kind == DifferenceKind::kPerPod);
  };
  std::stable_sort(comparison.differences.begin(), comparison.differences.end(),
                   [&](const Difference& a, const Difference& b) { return rank(a) < rank(b); });
  return comparison;
}

}  // namespace cachewarm::factors
