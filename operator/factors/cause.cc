// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/cause.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "operator/factors/differences.h"
#include "operator/factors/relevance.h"

namespace cachewarm::factors {
namespace {

using api::StartResult;

constexpr size_t kOthersNamed = 4;  // further differences that the text names
constexpr size_t kValueBytesMax = 80;

// Returns the factors of the builder. The image, the GPU type and the CPU class are known even if
// the bundle records no factors.
StartFactors KeyFactorsOf(const api::BundleStatus& bundle) {
  StartFactors out = Decode(bundle.factors);
  out["image"] = bundle.image;
  out["gpuType"] = bundle.gpu_type;
  out["cpuClass"] = bundle.cpu_class;
  return out;
}

std::string Shortened(std::string_view value) {
  return value.size() <= kValueBytesMax ? std::string(value)
                                        : fmt::format("{}...", value.substr(0, kValueBytesMax));
}

// Returns what differs, as a clause: "environment variable A differs from that of builder pod b".
std::string Describe(const Difference& difference, const std::string& builder) {
  const std::string name = DescribeFactor(difference.name);
  switch (difference.kind) {
    case DifferenceKind::kOnlyBuilder:
      return fmt::format("only builder pod {} has {}", builder, name);
    case DifferenceKind::kOnlyPod:
      return fmt::format("builder pod {} does not have {}", builder, name);
    case DifferenceKind::kPerPod:
      return fmt::format(
          "{} contains {}, which is different in {}", name,
          difference.pod.substr(difference.pod.find(':') + 1),
          difference.pod.starts_with(kPodPrefix) ? "every pod" : "pods of other nodes");
    case DifferenceKind::kChanged:
      break;
  }
  if (difference.builder.empty() || difference.pod.empty()) {
    return fmt::format("{} differs from that of builder pod {}", name, builder);
  }
  return fmt::format("{} is {}, but that of builder pod {} is {}", name, Shortened(difference.pod),
                     builder, Shortened(difference.builder));
}

std::string NameOthers(const std::vector<Difference>& differences) {
  std::vector<std::string> names;
  for (size_t i = 1; i < differences.size() && i <= kOthersNamed; ++i) {
    names.push_back(DescribeFactor(differences[i].name));
  }
  if (names.empty()) {
    return "";
  }
  const size_t more = differences.size() - 1 - names.size();
  return fmt::format(" Other differences: {}{}.", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

Cause CauseOf(const std::vector<Difference>& differences, const std::string& builder) {
  const Difference& first = differences.front();
  return {.factor = first.name,
          .text = fmt::format("{}: {}. {}.{}", Describe(first, builder), first.knowledge.effect,
                              first.knowledge.remedy, NameOthers(differences))};
}

bool IsOfKey(std::string_view name) {
  return name == "image" || name == "gpuType" || name == "devices" || name == "container" ||
         name == "cpuClass";
}

// Returns the differences in factors of the key.
std::vector<Difference> KeyDifferences(const api::BundleStatus& bundle, const StartFactors& pod) {
  std::vector<Difference> differences =
      Differences(KeyFactorsOf(bundle), pod, Usage::kRead).differences;
  std::erase_if(differences, [](const Difference& each) {
    return !IsOfKey(each.name) || each.kind != DifferenceKind::kChanged;
  });
  return differences;
}

constexpr std::string_view kEngineVariable = "env.";
constexpr std::string_view kVllmVariables = "env/VLLM_";

// Returns what is known about a part of vLLM's key. The parts other than variables are hashes of
// many values.
Knowledge KnowledgeOfKeyPart(std::string_view part) {
  if (part.starts_with(kEngineVariable)) {
    return {.relevance = Relevance::kKey,
            .effect = "vLLM reports in cache_key_factors.json that it is part of the key",
            .remedy =
                "Set the same value in all pods of the workload; it may come from a "
                "ConfigMap, a Secret, the image or a start script"};
  }
  if (part == "config_hash") {
    return {.relevance = Relevance::kKey,
            .effect = "it is vLLM's hash of its arguments and the model's configuration",
            .remedy = "Compare config.json of the model and the files that the arguments name"};
  }
  if (part == "code_hash") {
    return {.relevance = Relevance::kKey,
            .effect = "it is vLLM's hash of the Python files of the model",
            .remedy = "Use the same Python code, and at the same path, in all pods"};
  }
  return {.relevance = Relevance::kKey,
          .effect = "vLLM reports in cache_key_factors.json that it is part of the key",
          .remedy =
              "Compare the versions of torch and vLLM, and the configuration of "
              "TorchInductor"};
}

// Explains the start by the parts of vLLM's own key. A part that is a variable is exact, so it
// comes before every difference of the two pods. A part that is a hash of many values only confirms
// that something else differs, so it is the cause only if the pods themselves do not differ.
std::optional<Cause> ExplainKeyParts(const ExplainedStart& start,
                                     std::vector<Difference>& differences) {
  const std::vector<std::string>& parts = start.engine_factors;
  if (parts.empty()) {
    return std::nullopt;
  }
  const auto is_variable = [](std::string_view part) { return part.starts_with(kEngineVariable); };
  // The key has every VLLM_* variable on which vLLM keys, so the others have no effect.
  std::erase_if(differences,
                [](const Difference& each) { return each.name.starts_with(kVllmVariables); });
  const auto variable = std::find_if(parts.begin(), parts.end(), is_variable);
  if (variable == parts.end() && !differences.empty()) {
    return std::nullopt;
  }
  const std::string& first = variable == parts.end() ? parts.front() : *variable;
  std::vector<std::string> others;
  for (const std::string& part : parts) {
    if (part != first && is_variable(part) == is_variable(first)) {
      others.push_back(part);
    }
  }
  const Knowledge knowledge = KnowledgeOfKeyPart(first);
  return Cause{
      .factor = fmt::format("{}{}", kEngineFactorPrefix, first),
      .text = fmt::format(
          "vLLM's key factor {} differs from that of builder pod {}: {}. {}.{}", first,
          start.bundle->builder_pod, knowledge.effect, knowledge.remedy,
          others.empty() ? "" : fmt::format(" Other differences: {}.", fmt::join(others, ", ")))};
}

// The bundle served the pod and was active, but the engine compiled.
Cause ExplainUse(const ExplainedStart& start) {
  const api::BundleStatus& bundle = *start.bundle;
  std::vector<Difference> none;
  if (bundle.factors.empty()) {
    if (std::optional<Cause> cause = ExplainKeyParts(start, none)) {
      return *std::move(cause);
    }
    return {.factor = "",
            .text = fmt::format(
                "bundle {} records no factors of its builder, because an older operator published "
                "it: nothing can be compared. The next bundle of this key records them.",
                bundle.digest.Short())};
  }
  const Usage usage = start.result == StartResult::kInert ? Usage::kUnread : Usage::kRead;
  const Comparison comparison = Differences(Decode(bundle.factors), start.factors, usage);
  std::vector<Difference> differences = comparison.differences;
  if (!bundle.native) {
    // Without native code, a bundle serves every CPU class.
    std::erase_if(differences, [](const Difference& each) { return each.name == "cpuClass"; });
  }
  if (std::optional<Cause> cause = ExplainKeyParts(start, differences)) {
    return *std::move(cause);
  }
  if (!differences.empty()) {
    return CauseOf(differences, bundle.builder_pod);
  }
  if (comparison.is_salt_changed) {
    return {.factor = "",
            .text =
                "arguments and environment cannot be compared, because the salt of their hashes "
                "was replaced since the bundle was published. The next bundle of this key "
                "records them again."};
  }
  return {.factor = "",
          .text = fmt::format(
              "no recorded factor differs from builder pod {}. The content of a ConfigMap, Secret "
              "or volume may have changed, or the engine hashes a value that is new at each start; "
              "docs/troubleshooting.md (\"A start missed\") names what to check.",
              bundle.builder_pod)};
}

// The pod started without a bundle of its key.
std::optional<Cause> ExplainAbsence(const ExplainedStart& start) {
  if (start.bundle == nullptr) {
    return start.result == StartResult::kBuilder
               ? std::nullopt
               : std::optional(Cause{.factor = "",
                                     .text = "no bundle was published when the pod started. Later "
                                             "pods start warm once the first pod is captured."});
  }
  if (start.serves) {
    return Cause{
        .factor = "",
        .text = fmt::format("bundle {} was not active on node {} when the pod started. "
                            "Later pods on this node start warm; with spec.gate.mode Hold, "
                            "pods wait for the bundle.",
                            start.bundle->digest.Short(), start.node)};
  }
  const std::vector<Difference> differences = KeyDifferences(*start.bundle, start.factors);
  if (differences.empty()) {
    return Cause{.factor = "",
                 .text =
                     "no bundle of the pod's key was published when the pod started. Later pods "
                     "start warm once a pod with this key is captured."};
  }
  return CauseOf(differences, start.bundle->builder_pod);
}

}  // namespace

std::optional<Cause> FindCause(const ExplainedStart& start) {
  if (start.result == StartResult::kHit || start.result == StartResult::kUnknown) {
    return std::nullopt;
  }
  const bool had_bundle = start.serves && start.was_active;
  // A builder of a key that has a bundle builds it again because starts missed.
  if (start.result == StartResult::kBuilder && start.serves) {
    return std::nullopt;
  }
  const bool is_cold =
      start.result == StartResult::kCold || start.result == StartResult::kBuilder || !had_bundle;
  std::optional<Cause> cause = is_cold ? ExplainAbsence(start) : ExplainUse(start);
  if (cause.has_value() && cause->text.size() > kCauseBytesMax) {
    cause->text.resize(kCauseBytesMax - 3);
    cause->text += "...";
  }
  return cause;
}

const api::BundleStatus* ClosestBundle(const std::vector<api::BundleStatus>& bundles,
                                       const StartFactors& pod) {
  const api::BundleStatus* closest = nullptr;
  std::tuple<size_t, Duration> best;
  for (const api::BundleStatus& bundle : bundles) {
    const std::tuple rank(KeyDifferences(bundle, pod).size(),
                          -bundle.published_time.time_since_epoch());
    if (closest == nullptr || rank < best) {
      closest = &bundle;
      best = rank;
    }
  }
  return closest;
}

}  // namespace cachewarm::factors
