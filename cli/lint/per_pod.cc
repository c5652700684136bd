// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/per_pod.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "fmt/format.h"

namespace cachewarm::lint {
namespace {

constexpr std::array<std::string_view, 3> kModelOptions = {"--model", "--model-path",
                                                           "--model-name-or-path"};

bool RefersTo(std::string_view text, std::string_view name) {
  if (text.find(fmt::format("$({})", name)) != std::string_view::npos ||
      text.find(fmt::format("${{{}}}", name)) != std::string_view::npos) {
    return true;
  }
  const std::string bare = fmt::format("${}", name);
  for (size_t at = text.find(bare); at != std::string_view::npos; at = text.find(bare, at + 1)) {
    const size_t end = at + bare.size();
    const bool goes_on = end < text.size() &&
                         (text[end] == '_' || std::isalnum(static_cast<unsigned char>(text[end])));
    if (!goes_on) {
      return true;
    }
  }
  return false;
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Returns true for the word "vllm", also with a path.
bool IsVllm(std::string_view word) {
  return word.substr(word.rfind('/') + 1) == "vllm";
}

}  // namespace

bool IsPerPodField(std::string_view field_path) {
  static constexpr std::string_view kFields[] = {"metadata.name", "metadata.uid",  "status.podIP",
                                                 "status.podIPs", "status.hostIP", "status.hostIPs",
                                                 "spec.nodeName"};
  return std::find(std::begin(kFields), std::end(kFields), field_path) != std::end(kFields);
}

std::set<std::string, std::less<>> PerPodVariables(const Container& container) {
  std::set<std::string, std::less<>> names;
  // Kubernetes expands references only to variables that are defined earlier.
  for (const Variable& variable : container.env) {
    if (IsPerPodField(variable.field_path) || FirstReference(variable.value, names).has_value()) {
      names.insert(variable.name);
    }
  }
  return names;
}

std::optional<std::string> FirstReference(std::string_view text,
                                          const std::set<std::string, std::less<>>& names) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return RefersTo(text, name); });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

std::string Expanded(const Container& container, std::string text) {
  for (const Variable& variable : container.env) {
    // A value with a reference could name its own variable.
    if (variable.value.empty() || variable.value.find('$') != std::string::npos) {
      continue;
    }
    ReplaceAll(text, fmt::format("$({})", variable.name), variable.value);
    ReplaceAll(text, fmt::format("${{{}}}", variable.name), variable.value);
    if (text == fmt::format("${}", variable.name)) {
      text = variable.value;
    }
  }
  return text;
}

std::string ModelOf(const Container& container) {
  const std::vector<std::string>& words = container.words;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view option : kModelOptions) {
      if (words[i] == option && i + 1 < words.size()) {
        return words[i + 1];
      }
      if (words[i].starts_with(fmt::format("{}=", option))) {
        return words[i].substr(option.size() + 1);
      }
    }
  }
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (IsVllm(words[i]) && words[i + 1] == "serve" && !words[i + 2].starts_with("-")) {
      return words[i + 2];
    }
  }
  return "";
}

}  // namespace cachewarm::lint
