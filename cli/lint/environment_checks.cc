// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "cli/lint/checks.h"
#include "cli/lint/engine_names.h"
#include "cli/lint/per_pod.h"
#include "fmt/format.h"

namespace cachewarm::lint {
namespace {

constexpr std::array<std::string_view, 3> kHomeVariables = {"HOME", "XDG_CACHE_HOME",
                                                            "XDG_CONFIG_HOME"};
// Services with these names set a variable that the engine reads: VLLM_PORT, SGLANG_PORT.
constexpr std::array<std::string_view, 2> kEngineServices = {"vllm", "sglang"};

bool IsHomeVariable(std::string_view name) {
  return std::find(kHomeVariables.begin(), kHomeVariables.end(), name) != kHomeVariables.end();
}

const Variable* FindVariable(const Container& container, std::string_view name) {
  const auto found = std::find_if(container.env.begin(), container.env.end(),
                                  [&](const Variable& each) { return each.name == name; });
  return found == container.env.end() ? nullptr : &*found;
}

// Returns a problem for each engine that sets the variable `name`.
std::vector<Problem> FindVariableNamed(const Input& input, std::string_view name,
                                       std::string_view consequence) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    if (FindVariable(container, name) != nullptr) {
      problems.push_back({.pod = &pod,
                          .field = FieldOf(container, "env", name),
                          .message = fmt::format("{} is set: {}", name, consequence)});
    }
  });
  return problems;
}

// "the pod's metadata.name", "$(POD_NAME)"
std::string SourceOf(const Variable& variable, const std::set<std::string, std::less<>>& per_pod) {
  if (!variable.field_path.empty()) {
    return variable.field_path;
  }
  return fmt::format("$({})", FirstReference(variable.value, per_pod).value_or(""));
}

std::string_view ConsequenceFor(const Variable& variable) {
  if (IsCacheVariable(variable.name)) {
    return "the cache is in a directory that no other pod uses";
  }
  if (IsHomeVariable(variable.name)) {
    return "engines keep their caches below it, and vLLM before vllm-project/vllm#47573 hashes "
           "paths below it";
  }
  return "vLLM hashes the value, so no pod finds the files of another";
}

std::string ServiceVariable(std::string_view service) {
  std::string name(service);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name + "_PORT";
}

bool IsInNamespace(const Service& service, const PodTemplate& pod) {
  return service.ns.empty() || pod.ns.empty() || service.ns == pod.ns;
}

}  // namespace

void ForEachEngine(const Input& input, const ContainerCheck& check) {
  for (const PodTemplate& pod : input.templates) {
    for (const Container& container : pod.containers) {
      if (container.engine) {
        check(pod, container);
      }
    }
  }
}

std::string FieldOf(const Container& container, std::string_view list, std::string_view name) {
  return fmt::format("{}.{}[{}]", container.field, list, name);
}

std::vector<Problem> FindPerPodVariables(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    const auto per_pod = PerPodVariables(container);
    for (const Variable& variable : container.env) {
      const bool is_read = IsHashedByVllm(variable.name) || IsCacheVariable(variable.name) ||
                           IsHomeVariable(variable.name);
      if (is_read && per_pod.contains(variable.name)) {
        problems.push_back(
            {.pod = &pod,
             .field = FieldOf(container, "env", variable.name),
             .message = fmt::format("{} differs from pod to pod ({}): {}", variable.name,
                                    SourceOf(variable, per_pod), ConsequenceFor(variable))});
      }
    }
  });
  return problems;
}

std::vector<Problem> FindNixlHost(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    constexpr std::string_view kName = "VLLM_NIXL_SIDE_CHANNEL_HOST";
    if (PerPodVariables(container).contains(kName)) {
      problems.push_back(
          {.pod = &pod,
           .field = FieldOf(container, "env", kName),
           .message = fmt::format("{} differs from pod to pod: a vLLM that hashes it, such as "
                                  "0.20.1, compiles again in every pod",
                                  kName)});
    }
  });
  return problems;
}

std::vector<Problem> FindRayBundleIndices(const Input& input) {
  return FindVariableNamed(input, "VLLM_RAY_BUNDLE_INDICES",
                           "vLLM hashes it, so engines with other indices miss");
}

std::vector<Problem> FindApiKey(const Input& input) {
  return FindVariableNamed(input, "VLLM_API_KEY",
                           "vLLM hashes it, so pods with another key miss, and it writes the key "
                           "in clear text to cache_key_factors.json in the cache");
}

std::vector<Problem> FindAiterDirectory(const Input& input) {
  return FindVariableNamed(input, "AITER_JIT_DIR", "vLLM hangs at its start on ROCm");
}

std::vector<Problem> FindHomeOfUid(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    if (container.run_as_user.value_or(0) != 0 && FindVariable(container, "HOME") == nullptr) {
      problems.push_back(
          {.pod = &pod,
           .field = container.field,
           .message = fmt::format("runAsUser is {} and HOME is not set: for a uid that /etc/passwd "
                                  "of the image lacks, HOME is / and caches below it cannot be "
                                  "written",
                                  *container.run_as_user)});
    }
  });
  return problems;
}

std::vector<Problem> FindServiceVariables(const Input& input) {
  std::vector<Problem> problems;
  for (const PodTemplate& pod : input.templates) {
    const bool has_engine = std::any_of(pod.containers.begin(), pod.containers.end(),
                                        [](const Container& each) { return each.engine; });
    for (const Service& service : input.services) {
      const bool is_engine = std::find(kEngineServices.begin(), kEngineServices.end(),
                                       service.name) != kEngineServices.end();
      if (has_engine && is_engine && pod.service_links && IsInNamespace(service, pod)) {
        problems.push_back(
            {.pod = &pod,
             .field = "enableServiceLinks",
             .message = fmt::format("the Service \"{}\" makes kubelet set {}=tcp://..., which the "
                                    "engine reads as its port",
                                    service.name, ServiceVariable(service.name))});
      }
    }
  }
  return problems;
}

}  // namespace cachewarm::lint
