// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "cli/lint/checks.h"
#include "cli/lint/engine_names.h"
#include "cli/lint/per_pod.h"
#include "cli/lint/shell_words.h"
#include "fmt/format.h"

namespace cachewarm::lint {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the values that a shell script assigns to the variable `name`.
std::vector<std::string> Assigned(const Container& container, std::string_view name) {
  const std::string prefix = fmt::format("{}=", name);
  std::vector<std::string> values;
  for (const std::string& word : container.words) {
    if (word.starts_with(prefix)) {
      values.push_back(word.substr(prefix.size()));
    }
  }
  return values;
}

// Returns the name in a word that is, or begins with, $NAME or ${NAME}; empty for other words.
std::string ShellVariableOf(std::string_view word) {
  if (!word.starts_with('$')) {
    return "";
  }
  word.remove_prefix(word.starts_with("${") ? 2 : 1);
  const auto* end = std::find_if(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_';
  });
  return {word.begin(), end};
}

bool DiffersPerStart(const Container& container, const std::string& value) {
  if (IsRandom(value) || FirstReference(value, PerPodVariables(container)).has_value()) {
    return true;
  }
  const std::vector<std::string> assigned = Assigned(container, ShellVariableOf(value));
  return std::any_of(assigned.begin(), assigned.end(),
                     [](const std::string& each) { return IsRandom(each); });
}

// Returns the option and value of each argument that sets a port: "--port 8000", "--rpc-port=$P".
std::vector<std::pair<std::string, std::string>> PortArguments(const Container& container) {
  std::vector<std::pair<std::string, std::string>> ports;
  const std::vector<std::string>& words = container.words;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    if (!option.starts_with("--") || !option.ends_with("port")) {
      continue;
    }
    if (equals != std::string::npos) {
      ports.emplace_back(option, words[i].substr(equals + 1));
    } else if (i + 1 < words.size()) {
      ports.emplace_back(option, words[i + 1]);
    }
  }
  return ports;
}

// Returns the model's name without its directory, in lower case: "qwen3-8b" for "Qwen/Qwen3-8B",
// "/data1/Qwen3-8B" and ".../models--Qwen--Qwen3-8B/snapshots/0a1b".
std::string ModelName(std::string model) {
  constexpr std::string_view kSnapshot = "models--";
  if (const size_t at = model.find(kSnapshot); at != std::string::npos) {
    model = model.substr(at + kSnapshot.size());
    model = model.substr(0, model.find('/'));
    const size_t dashes = model.rfind("--");
    return Lower(dashes == std::string::npos ? model : model.substr(dashes + 2));
  }
  while (model.ends_with('/')) {
    model.pop_back();
  }
  return Lower(model.substr(model.rfind('/') + 1));
}

struct Side {
  const PodTemplate* pod = nullptr;
  const Container* container = nullptr;
  std::string model;  // expanded
};

// Groups the containers with vLLM that could share a cache: the same image and the same model.
std::vector<std::vector<Side>> Groups(const Input& input) {
  std::map<std::pair<std::string, std::string>, std::vector<Side>> groups;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    std::string model = Expanded(container, ModelOf(container));
    if (!model.empty() && RunsVllm(container)) {
      std::vector<Side>& group = groups[{container.image, ModelName(model)}];
      group.push_back({&pod, &container, std::move(model)});
    }
  });
  std::vector<std::vector<Side>> out;
  out.reserve(groups.size());
  for (auto& [key, sides] : groups) {
    out.push_back(std::move(sides));
  }
  return out;
}

bool IsOffline(const Container& container) {
  static constexpr std::array<std::string_view, 4> kTrue = {"1", "on", "yes", "true"};
  return std::any_of(container.env.begin(), container.env.end(), [](const Variable& variable) {
    return variable.name == "HF_HUB_OFFLINE" &&
           std::find(kTrue.begin(), kTrue.end(), Lower(variable.value)) != kTrue.end();
  });
}

std::string SideName(const Side& side) {
  return fmt::format("container \"{}\" of {}", side.container->name, side.pod->Object());
}

}  // namespace

std::vector<Problem> FindRandomModelPath(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    const std::string model = ModelOf(container);
    if (RunsVllm(container) && DiffersPerStart(container, model)) {
      problems.push_back({.pod = &pod,
                          .field = fmt::format("{}.args", container.field),
                          .message = fmt::format("the path of the model differs at each start "
                                                 "({}): vLLM hashes the text of --model",
                                                 model)});
    }
  });
  return problems;
}

std::vector<Problem> FindPortPerPod(const Input& input) {
  std::vector<Problem> problems;
  ForEachEngine(input, [&](const PodTemplate& pod, const Container& container) {
    for (const auto& [option, value] : PortArguments(container)) {
      if (RunsVllm(container) && DiffersPerStart(container, value)) {
        problems.push_back(
            {.pod = &pod,
             .field = fmt::format("{}.args", container.field),
             .message = fmt::format("{} {} differs from pod to pod: a port that the engine keeps "
                                    "in its parallel configuration may be part of its key",
                                    option, value)});
      }
    }
  });
  return problems;
}

std::vector<Problem> FindOneSidedOffline(const Input& input) {
  std::vector<Problem> problems;
  for (const std::vector<Side>& sides : Groups(input)) {
    const auto with = std::find_if(sides.begin(), sides.end(),
                                   [](const Side& side) { return IsOffline(*side.container); });
    const auto without = std::find_if(sides.begin(), sides.end(),
                                      [](const Side& side) { return !IsOffline(*side.container); });
    if (with != sides.end() && without != sides.end()) {
      problems.push_back({.pod = without->pod,
                          .field = FieldOf(*without->container, "env", "HF_HUB_OFFLINE"),
                          .message = fmt::format(
                              "HF_HUB_OFFLINE is set in {} and not here: offline, vLLM replaces "
                              "the model's name by a local path, which it hashes",
                              SideName(*with))});
    }
  }
  return problems;
}

std::vector<Problem> FindOneSidedModelPath(const Input& input) {
  std::vector<Problem> problems;
  for (const std::vector<Side>& sides : Groups(input)) {
    const auto other = std::find_if(sides.begin(), sides.end(), [&](const Side& side) {
      return side.model != sides.front().model;
    });
    if (other != sides.end()) {
      problems.push_back(
          {.pod = other->pod,
           .field = fmt::format("{}.args", other->container->field),
           .message = fmt::format("the model is {} here and {} in {}: vLLM hashes the text of "
                                  "--model, so they share no cache",
                                  other->model, sides.front().model, SideName(sides.front()))});
    }
  }
  return problems;
}

}  // namespace cachewarm::lint
